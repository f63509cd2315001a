import type { ModelRoute } from '../../../shared/agent/providers/port.ts'
import type { Log } from '../../../shared/kernel/log.ts'
import type { Settings } from '../../../shared/platform/config/groups.ts'
import type { ModelTarget } from '../../../shared/platform/config/model.ts'
import { createProvider, type ProviderSettings } from './create-provider.ts'

type OwnRoutes = { primary: ModelRoute | undefined; fallback: ModelRoute | undefined }

type ModelSettings = Pick<Settings['worker']['models'], 'model' | 'fallback'> &
  Partial<Pick<Settings['worker']['models'], 'httpsProxy' | 'noProxy'>>

/** Creates the providers of the server's model and of its fallback (D1.3 MODEL). The cluster form may have no model (D1.4). */
export async function createModels(
  { model, fallback, httpsProxy, noProxy }: ModelSettings,
  log?: Log,
): Promise<OwnRoutes> {
  const onLeftOut = (message: string) => log?.warn(message)
  const proxy = httpsProxy === undefined ? undefined : { url: httpsProxy, except: noProxy }
  const open = (target: ModelTarget) => openRoute(target, { onLeftOut, proxy })
  return { primary: model && (await open(model)), fallback: fallback && (await open(fallback)) }
}

async function openRoute(
  { provider: type, model, ...address }: ModelTarget,
  common: Pick<ProviderSettings, 'onLeftOut' | 'proxy'>,
): Promise<ModelRoute> {
  return { provider: await createProvider({ type, ...address, ...common }), model }
}
