import type { Schema } from '../../../../../shared/client/api.ts'

type Message = Schema<'SessionMessage'>

/** The versions of a message, oldest first, and the index of the shown version. Each version is given by the last message of its newest branch. */
export type Versions = { heads: readonly string[]; at: number }

/** The versions of the user's messages that have several, by message id. `branches`: all branches of the session, the newest last. */
export function versionsOf(
  shown: readonly Message[],
  branches: readonly (readonly Message[])[],
): ReadonlyMap<string, Versions> {
  const found = new Map<string, Versions>()
  for (const { id, parent_id: parent, role } of shown) {
    if (role !== 'user') continue
    const heads = new Map<string, string>()
    for (const branch of branches) {
      const version = branch.find((each) => each.role === 'user' && each.parent_id === parent)
      const head = branch.at(-1)?.id
      if (version && head !== undefined) heads.set(version.id, head)
    }
    const at = [...heads.keys()].indexOf(id)
    if (heads.size > 1 && at >= 0) found.set(id, { heads: [...heads.values()], at })
  }
  return found
}
