import { relative } from 'node:path'
import { AppError, invalidRequest } from '../../../kernel/errors.ts'
import { isStricter } from '../policy-rules.ts'
import type { RuleSubject, ToolContext } from '../port.ts'
import { matchesWildcard } from '../wildcard.ts'
import { locate, relativePath } from './workspace.ts'

/** The normalized path of a file, for rules such as `Write(docs/*)`. No rule matches a path that the tool will refuse. */
export function pathSubject(path: unknown): RuleSubject {
  const normalized = relativeOrEmpty(String(path))
  const isNamed = (rule: string) => matchesWildcard(rule, normalized)
  return { isOnly: isNamed, includes: isNamed }
}

function relativeOrEmpty(path: string): string {
  try {
    return relativePath(path)
  } catch {
    return ''
  }
}

/**
 * Throws `invalid_request` when symbolic links lead to a file with a stricter rule than the path itself. A path that cannot be
 * resolved is left to the tool.
 */
export async function assertLinksAllowed(
  tool: string,
  path: string,
  { workspace, policyOf }: Pick<ToolContext, 'workspace' | 'policyOf'>,
): Promise<void> {
  const target = await targetOf(workspace, path)
  if (target === undefined || target === relativePath(path)) return
  if (!isStricter(policyOf(tool, { path: target }), policyOf(tool, { path }))) return
  throw invalidRequest(
    `${path}: a symbolic link leads to a file for which a stricter rule holds. Give the path of the file itself.`,
  )
}

async function targetOf(workspace: string, path: string): Promise<string | undefined> {
  try {
    const { root, path: target } = await locate(workspace, path)
    return relative(root, target) || '.'
  } catch (cause) {
    if (cause instanceof AppError) return undefined
    throw cause
  }
}
