import { branchTo, findNamed } from '../../../shared/agent/engine/messages/branches.ts'
import type { Message } from '../../../shared/agent/providers/port.ts'
import type { SessionBegin, SessionBranch, SessionSummary } from '../../../shared/cluster/commands/sessions.ts'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import type { Workspaces } from '../../../shared/work/runs/workspaces.ts'
import type { Session } from './session.ts'
import type { SessionIdentity } from './session-state.ts'
import type { Sessions } from './sessions.ts'

export const isBranch = (begin: SessionBegin): begin is SessionBranch => 'from' in begin

/**
 * The branch that ends with this message, or with the last one of this run. Its folder is named only if nothing was added to the session
 * since then, so that the folder is unchanged. Throws `invalid_request` for a message that the session does not have, or that no other can
 * follow.
 */
export function branchOf({ id, conversation: { all }, title, isBusy, workspace }: Session, at: string): SessionBranch {
  const end = findNamed(all, at)
  if (!end?.stamp)
    throw invalidRequest('at must be the id of a message of this session, or of a run of it', { param: '/at' })
  if (end.role === 'assistant' && end.blocks.some(({ type }) => type === 'tool_use'))
    throw invalidRequest('at is a message whose tool calls have their results behind it: name that message', {
      param: '/at',
    })
  return {
    messages: branchTo(all, end.stamp.id),
    title: title ?? null,
    from: { session_id: id, message_id: end.stamp.id },
    ...(end === all.at(-1) && !isBusy && { workspace }),
  }
}

type ForkDeps = { sessions: Pick<Sessions, 'create' | 'remove'>; workspaces: Pick<Workspaces, 'copy'> }

/** Creates a session with a branch of another one, and a copy of its folder if the processes share one folder. */
export async function fork(
  identity: SessionIdentity,
  { messages, title, from, workspace }: SessionBranch,
  { sessions, workspaces }: ForkDeps,
): Promise<SessionSummary> {
  const begin = { messages: messages as readonly Message[], title: title ?? undefined, from }
  const session = sessions.create(identity, begin)
  try {
    if (workspace !== undefined) await workspaces.copy?.(identity.tenant, workspace, session.workspace)
  } catch (cause) {
    await sessions.remove(identity.tenant, identity.id, identity.token)
    throw cause
  }
  return session.summary
}
