import { openWorkspaceStore } from '../../services/wiring/open-workspaces.ts'
import { keepsConditions } from '../../shared/platform/objects/check.ts'
import { type Check, type Finding, reasonOf } from './finding.ts'

/** The bucket of WORKSPACE_STORE: it can be written, read, listed and deleted in, and keeps the conditions of writes. */
export const checkWorkspaceStore: Check = async ({ config }) => {
  const objects = await openWorkspaceStore(config)
  if (!objects) return []
  try {
    const isKept = await keepsConditions(objects)
    await objects.has('check/none') // Refused to a key that may not read.
    for await (const _ of objects.list('check/')) break
    return isKept ? [] : IGNORED
  } catch (cause) {
    const reason = cause instanceof Error && cause.cause !== undefined ? cause.cause : cause
    const cure =
      'correct WORKSPACE_STORE and its settings, let this machine reach it, and let the key read, write, delete and list'
    return [{ problem: `the store of WORKSPACE_STORE cannot be used: ${reasonOf(reason)}`, cure }]
  } finally {
    await objects.close()
  }
}

const IGNORED: Finding[] = [
  {
    problem:
      'the store of WORKSPACE_STORE ignores If-Match and If-None-Match, so a process that was thought dead could overwrite newer files',
    cure: 'use a store that keeps them',
  },
]
