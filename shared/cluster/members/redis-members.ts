import { randomUUID } from 'node:crypto'
import { withDeadline } from '../../kernel/async/deadline.ts'
import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject, parseJson } from '../../kernel/json.ts'
import type { RedisLink } from '../../platform/redis/link.ts'
import {
  LEASE_MS,
  type Member,
  type MemberAbout,
  type MemberChange,
  type MemberFields,
  type MemberList,
  type Members,
  PROTOCOL,
  type Renewal,
  ROLES,
  STATES,
} from './members.ts'
import {
  CHANGES,
  EXPIRE,
  EXTEND,
  HEARD,
  IS_MEMBER,
  JOIN,
  KEYS,
  LEAVE,
  LIST,
  LOOK,
  READ_BOOT,
  RENEW,
} from './redis-member-scripts.ts'

type Link = Pick<RedisLink, 'run' | 'prefix' | 'subscribeToScripts' | 'isCluster'>

/** The members of the cluster in Redis. One object per process, because it remembers the process's record in Redis. */
export function createRedisMembers(link: Link): Members {
  const changes = link.prefix + CHANGES
  return {
    ...createOwnMember(link),
    async leave(epoch) {
      await link.run(LEAVE, KEYS, [changes, epoch])
    },
    async list() {
      const members = new Map<number, Member>()
      const first = readPiece(await link.run(LIST, KEYS, [0]))
      for (let piece = first; ; piece = readPiece(await link.run(LIST, KEYS, [piece.next]))) {
        for (const member of piece.members) members.set(member.epoch, member)
        if (piece.next === '0') return { version: first.version, members: [...members.values()] }
      }
    },
    async look(loadsOf) {
      const answer = await link.run(LOOK, KEYS, loadsOf)
      const [version, lapsed, loads] = answer as [string, string[], (string | null)[]]
      return { version: Number(version), lapsed: lapsed.map(Number), loads: loads.map(Number) }
    },
    watch: (onChange) =>
      link.subscribeToScripts(CHANGES, (message) => {
        const change = readChange(message.toString())
        if (change) onChange(change)
      }),
    isMember: async (epoch) => (await link.run(IS_MEMBER, KEYS, [epoch])) === 1,
    expire: async (epoch) => (await link.run(EXPIRE, KEYS, [changes, epoch])) === 1,
  }
}

/** This process as a member: its boot marker, its nonce, and its record in Redis. */
function createOwnMember(link: Link): Pick<Members, 'join' | 'renew' | 'isBootMarkerCurrent'> {
  const nonce = randomUUID()
  const own = (fields: MemberFields) => [link.prefix + CHANGES, LEASE_MS, nonce, packFields(fields), fields.load]
  const isHeard = createHearing(link)
  let boot = ''
  let published = ''
  return {
    async join(fields) {
      const [epoch, marker] = (await link.run(JOIN, KEYS, own(fields))) as [number, string]
      boot = marker
      published = recordOf(epoch, fields)
      return epoch
    },
    async renew(epoch, fields, { channel, message }) {
      if (link.isCluster && !(await isHeard(channel, message))) return { outcome: 'unheard', version: 0 }
      const probe = link.isCluster ? [] : [link.prefix + channel, ...(message ? [message] : [])]
      if (published === recordOf(epoch, fields)) {
        const version = await link.run(EXTEND, KEYS, [LEASE_MS, epoch, fields.load, boot, nonce, ...probe])
        if (version !== null) return { outcome: 'renewed', version: Number(version) }
      }
      const answer = await link.run(RENEW, KEYS, [...own(fields), epoch, boot, ...probe])
      const [outcome, marker, version] = answer as [Renewal, string, string]
      boot = marker
      if (outcome === 'renewed' || outcome === 'keys_lost') published = recordOf(epoch, fields)
      return { outcome, version: Number(version) }
    },
    isBootMarkerCurrent: async () => (await link.run(READ_BOOT, KEYS, [])) === boot,
  }
}

/**
 * Whether a channel of a Redis Cluster has a subscriber; it may be at another node than the members. While that node does not answer, no
 * process can publish there either: the process stays a member until its replica has taken over.
 */
function createHearing(link: Link) {
  let answeredAt = performance.now()
  return async (channel: string, message: Buffer | undefined): Promise<boolean> => {
    try {
      const answer = link.run(HEARD, [channel], message ? [message] : [])
      const heard = await withDeadline(answer, NODE_MS, () => new Error('the node of the channel does not answer'))
      answeredAt = performance.now()
      return heard !== 0
    } catch (cause) {
      if (performance.now() - answeredAt > NODE_AWAY_MS) throw cause
      return true
    }
  }
}

/** Short, because the renewal follows and its time counts from before this check. */
const NODE_MS = 500
/** Streams end when Redis has been away for the same time. */
const NODE_AWAY_MS = 10_000

const recordOf = (epoch: number, fields: MemberFields): string => `${epoch} ${packFields(fields)}`

const packFields = ({ load: _load, ...fields }: MemberFields): string =>
  JSON.stringify({ protocol: PROTOCOL, ...fields })

type Piece = [now: number, version: string, next: string, records: string[], ends: string[], loads: string[]]

function readPiece(answer: unknown): MemberList & { next: string } {
  const [now, version, next, records, ends, loads] = answer as Piece
  const members = pairsOf(records).flatMap(([epoch, record], i): Member[] => {
    const fields = readFields(record.slice(record.indexOf(' ') + 1))
    const expiresInMs = Number(ends[i] ?? 0) - now
    return fields ? [{ ...fields, load: Number(loads[i] ?? 0), epoch: Number(epoch), expiresInMs }] : []
  })
  return { version: Number(version), next, members }
}

/** Reads a hash as Redis returns it: field, value, field, value. */
const pairsOf = (entries: readonly string[]): [field: string, value: string][] =>
  Array.from({ length: entries.length >> 1 }, (_, i) => [entries[2 * i] ?? '', entries[2 * i + 1] ?? ''])

/** `undefined` for a message that is no change. */
function readChange(message: string): MemberChange | undefined {
  const [, version, epoch, text = ''] = /^(\d{1,16}) (\d{1,10}) (.*)$/.exec(message) ?? []
  if (version === undefined) return undefined
  const fields = readFields(text)
  const member = fields && { ...fields, load: 0, epoch: Number(epoch), expiresInMs: LEASE_MS }
  return { version: Number(version), epoch: Number(epoch), isGone: text === '', member }
}

/**
 * Another release may have written the fields: `undefined` for a role or state that this one does not know, and for a process
 * without a common protocol version.
 */
function readFields(text: string): Omit<MemberFields, 'load'> | undefined {
  const fields = parseJson(text)
  if (!isJsonObject(fields)) return undefined
  const { role, state, pid, protocol } = fields
  const knownRole = ROLES.find((known) => known === role)
  const knownState = STATES.find((known) => known === state)
  if (!knownRole || !knownState || !isCompatible(protocol)) return undefined
  return { role: knownRole, state: knownState, pid: Number(pid), ...readAbout(fields) }
}

function readAbout({ version, since, capacity }: JsonObject): MemberAbout {
  return {
    ...(typeof version === 'string' && { version }),
    ...(typeof since === 'string' && { since }),
    ...(typeof capacity === 'number' && { capacity }),
  }
}

const isCompatible = (protocol: unknown): boolean =>
  isJsonObject(protocol) && Number(protocol['min']) <= PROTOCOL.max && Number(protocol['max']) >= PROTOCOL.min
