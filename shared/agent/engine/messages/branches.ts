import { newId } from '../../../kernel/ids.ts'
import type { Message, MessageStamp } from '../../providers/port.ts'

/** A stamp of an older release, whose histories have no branches, has neither an id nor a parent. */
type StoredStamp = Omit<MessageStamp, 'id' | 'parent'> & Partial<Pick<MessageStamp, 'id' | 'parent'>>

/** Links messages that name no parent, each to the one before it; the first one to `parent`. */
function linked(messages: readonly Message[], parent: string | null): readonly Message[] {
  let before = parent
  return messages.map((message) => {
    const stamp: StoredStamp | undefined = message.stamp
    if (!stamp) return message
    const link = { id: stamp.id ?? `msg_${stamp.seq}`, parent: stamp.parent === undefined ? before : stamp.parent }
    before = link.id
    return stamp.id === link.id && stamp.parent === link.parent ? message : { ...message, stamp: { ...stamp, ...link } }
  })
}

export const headOf = (branch: readonly Message[]): string | null => branch.at(-1)?.stamp?.id ?? null

/** The messages from the first one of a branch to `head`, in their order. */
export function branchTo(all: readonly Message[], head: string | null): readonly Message[] {
  const byId = new Map(all.map((message) => [message.stamp?.id, message]))
  const branch: Message[] = []
  for (let id = head; id !== null; ) {
    const message = byId.get(id)
    if (!message) break
    branch.push(message)
    id = message.stamp?.parent ?? null
  }
  return branch.reverse()
}

/** The ids of the messages without a following one, oldest first. */
export function branchEnds(all: readonly Message[]): string[] {
  const parents = new Set(all.map(({ stamp }) => stamp?.parent))
  return all.flatMap(({ stamp }) => (stamp && !parents.has(stamp.id) ? [stamp.id] : []))
}

/**
 * Finds a message by its id or by the id that its client has given it, or else the last message of the run with this id. A client may give
 * an edited message the id of the one before: the newest of them is returned, or the newest with this text if there is one.
 */
export function findNamed(all: readonly Message[], name: string, text?: string): Message | undefined {
  const isNamed = ({ stamp, client }: Message) => stamp?.id === name || client === name
  const isMeant = (message: Message) => message.role === 'user' && message.text.trim() === text && isNamed(message)
  return (
    (text === undefined ? undefined : all.findLast(isMeant)) ??
    all.findLast(isNamed) ??
    all.findLast(({ stamp }) => stamp?.runId === name)
  )
}

/**
 * Replaces one branch by a shorter one with a new beginning. Messages that only this branch had are dropped. Other branches keep their
 * messages; those that follow a kept message get the shorter beginning, too.
 */
export function withBranchReplaced(
  all: readonly Message[],
  { branch, shorter }: { branch: readonly Message[]; shorter: readonly Message[] },
): readonly Message[] {
  const kept = new Map(shorter.map((message) => [message.stamp?.id, message]))
  const own = new Map(branch.map((message) => [message.stamp?.id, message]))
  const followed = new Set<string>()
  for (const { stamp } of all) {
    if (!stamp || own.has(stamp.id)) continue
    for (let id = stamp.parent; id !== null && own.has(id) && !kept.has(id) && !followed.has(id); ) {
      followed.add(id)
      id = own.get(id)?.stamp?.parent ?? null
    }
  }
  const added = shorter.filter(({ stamp }) => !own.has(stamp?.id))
  const left = all.flatMap((message) => {
    const id = message.stamp?.id
    const isGone = own.has(id) && !kept.has(id) && !followed.has(id ?? '')
    return isGone ? [] : [kept.get(id) ?? message]
  })
  const at = left.findIndex(({ stamp }) => kept.has(stamp?.id))
  return at < 0 ? [...left, ...added] : left.toSpliced(at, 0, ...added)
}

/** Sets the parents of all messages of a branch again, from its beginning. */
export const relinked = (branch: readonly Message[]): readonly Message[] =>
  branch.map((message, i) => {
    const parent = headOf(branch.slice(Math.max(0, i - 1), i))
    if (!message.stamp || message.stamp.parent === parent) return message
    return { ...message, stamp: { ...message.stamp, parent } }
  })

/** The number of the last message; 0 without one. */
export const lastSeqOf = (messages: readonly Message[]): number => messages.at(-1)?.stamp?.seq ?? 0

/** The stamp of the last message, and the id of the one that the first message follows. */
type Place = Omit<MessageStamp, 'id'>

/**
 * Stamps the messages that have no stamp, and links each to the one before. They are numbered from the end, the last one with `last.seq`: the summary that replaces older
 * messages gets a number that one of these had, so that a reader who continues after a number misses nothing newer.
 */
export function withStamps(messages: readonly Message[], { parent, ...last }: Place): readonly Message[] {
  let { seq } = last
  const stamped = messages.toReversed().map((message) => {
    const { stamp = { ...last, seq, id: newId('msg') } } = message
    seq = stamp.seq - 1
    return message.stamp ? message : { ...message, stamp }
  })
  return linked(stamped.reverse() as Message[], parent)
}
