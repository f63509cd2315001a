import type { Schema } from '../../../../../shared/client/api.ts'

type Message = Schema<'SessionMessage'>

/** The versions of a message: the last message of the newest branch of each, oldest first, and the place of the one that is shown. */
export type Versions = { heads: readonly string[]; at: number }

/** The versions of those messages of the user that have others, by their ids. `branches` are all of the session, the newest last. */
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
