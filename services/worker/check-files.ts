import { unsupported } from '../../shared/agent/files/attachable.ts'
import { refusalOf, takesFile } from '../../shared/agent/providers/shown-files.ts'
import { canShow } from '../../shared/agent/providers/strategy.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import { fileKindOf } from '../../shared/kernel/attachment.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { ModelSource } from '../../shared/work/runs/models.ts'

/** What a probe has found of the model that a tenant's runs call; `undefined` where there is none. */
export type Probes = (tenant: TenantId, model: string) => Promise<{ vision: boolean } | undefined>

export type FileDeps = { models: Pick<ModelSource, 'modelsFor'>; probes?: Probes | undefined }

/** Throws `invalid_request` for a file that the model does not take, as far as is known before it is called (D47). The tenant's models are loaded. */
export async function checkFiles(
  tenant: TenantId,
  { files = [], model: chosen }: Pick<RunRequest, 'files' | 'model'>,
  { models, probes }: FileDeps,
): Promise<void> {
  const { primary, fallback, strategy = 'order' } = models.modelsFor(tenant, chosen).main()
  if (strategy !== 'order' && fallback && files.every((file) => canShow(fallback, file))) return
  const isImage = files.map(({ media_type }) => fileKindOf(media_type) === 'image')
  const isBlind = isImage.includes(true) && (await probes?.(tenant, primary.model))?.vision === false
  const index = files.findIndex((file, i) => !takesFile(primary, file) || (isBlind && isImage[i]))
  const refused = files[index]
  if (refused) throw unsupported(refusalOf(refused, primary.model), `/attachments/${index}`)
}
