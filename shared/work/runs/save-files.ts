import { withProgress } from '../../kernel/async/deadline.ts'
import { AppError } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { KeptFiles, SaveProgress } from './workspaces.ts'

/**
 * Stores the files of a folder. Throws what `save` throws, and `unavailable` when the store has accepted nothing for this long; the files are then
 * stored later. Many files may take longer, as long as the store keeps accepting files.
 */
export function saveFiles(
  kept: Pick<KeptFiles, 'save'>,
  { tenant, scope }: { tenant: TenantId; scope: string },
  withoutProgressMs: number,
): Promise<void> {
  let progress: SaveProgress = { stored: 0, files: 0 }
  const save = (onProgress: () => void) =>
    kept.save(tenant, scope, (now) => {
      progress = now
      onProgress()
    })
  return withProgress(save, withoutProgressMs, () => stalled(progress, withoutProgressMs))
}

function stalled({ stored, files }: SaveProgress, ms: number): AppError {
  const reached = files === 0 ? '' : `; ${stored} of ${files} files are stored`
  return new AppError('unavailable', `the store of the files has taken nothing for ${ms / 1_000} s${reached}`)
}
