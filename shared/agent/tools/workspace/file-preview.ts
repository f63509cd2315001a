import { AppError, hasKind } from '../../../kernel/errors.ts'
import type { PermissionPreview } from '../../../kernel/events.ts'
import { showControls, showHidden, truncate } from '../../../kernel/text.ts'
import type { PreviewContext } from '../port.ts'
import { readText } from './file.ts'
import { assertLinksAllowed } from './path-rules.ts'

/** Larger files have no preview: comparing them would block the other work of this process. */
const MAX_CHARS = 256 * 1024
const MAX_DIFF_CHARS = 32 * 1024

export type FileChange = {
  tool: string
  path: string
  /** Returns the new text. `before` is `undefined` for a file that does not exist. */
  change(before: string | undefined): string
}

/** Shows what a call would change in a file; `undefined` if the call will fail, or the policy does not allow to read the file. */
export async function previewOf(
  { tool, path, change }: FileChange,
  context: PreviewContext,
): Promise<PermissionPreview | undefined> {
  try {
    if (context.policyOf('Read', { path }) === 'deny') return undefined
    for (const each of [tool, 'Read']) await assertLinksAllowed(each, path, context)
    const before = await textOf(context.workspace, path)
    const after = change(before)
    if (Math.max(before?.length ?? 0, after.length) > MAX_CHARS) return undefined
    const { fileDiff } = await import('./file-diff.ts') // Imported on first use, so that a start does not load its package.
    const name = showControls(path)
    const diff = showHidden(fileDiff(name, { before, after }))
    return { kind: 'diff', path: name, diff: truncate(diff, MAX_DIFF_CHARS, '\n[… the rest is left out …]\n') }
  } catch (cause) {
    if (cause instanceof AppError && cause.kind !== 'internal') return undefined
    throw cause
  }
}

async function textOf(workspace: string, path: string): Promise<string | undefined> {
  try {
    return await readText(workspace, path)
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return undefined
    throw cause
  }
}
