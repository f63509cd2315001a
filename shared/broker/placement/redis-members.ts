import { randomUUID } from 'node:crypto'
import { isJsonObject, parseJson } from '../../json.ts'
import type { RedisLink } from '../redis-link.ts'
import {
  type Member,
  type MemberChange,
  type MemberFields,
  type MemberList,
  type Members,
  PROTOCOL,
  type Renewal,
  ROLES,
  STATES,
} from './members.ts'
import { CHANGES, EXPIRE, IS_MEMBER, JOIN, KEYS, LEAVE, LIST, LOOK, READ_BOOT, RENEW } from './redis-member-scripts.ts'

/** A lease ends this long after its last renewal. The member itself stops acting earlier, see `Lease`. */
const LEASE_MS = 4_000

/** The members of the cluster in Redis. One object per process: it remembers the boot marker and its nonce. */
export function createRedisMembers(link: Pick<RedisLink, 'run' | 'prefix' | 'listen'>): Members {
  const nonce = randomUUID()
  const changes = link.prefix + CHANGES
  let boot = ''
  const own = ({ load, ...fields }: MemberFields) => [changes, LEASE_MS, nonce, packFields(fields), load]
  return {
    async join(fields) {
      const [epoch, marker] = (await link.run(JOIN, KEYS, own(fields))) as [number, string]
      boot = marker
      return epoch
    },
    async renew(epoch, fields, { channel, message }) {
      const args = [...own(fields), epoch, boot, link.prefix + channel, ...(message ? [message] : [])]
      const [outcome, marker, version] = (await link.run(RENEW, KEYS, args)) as [Renewal, string, string]
      boot = marker
      return { outcome, version: Number(version) }
    },
    async leave(epoch) {
      await link.run(LEAVE, KEYS, [changes, epoch])
    },
    list: async () => readList((await link.run(LIST, KEYS, [])) as Listed),
    async look(loadsOf) {
      const answer = await link.run(LOOK, KEYS, loadsOf)
      const [version, lapsed, loads] = answer as [string, string[], (string | null)[]]
      return { version: Number(version), lapsed: lapsed.map(Number), loads: loads.map(Number) }
    },
    watch: (onChange) =>
      link.listen(CHANGES, (message) => {
        const change = readChange(message.toString())
        if (change) onChange(change)
      }),
    isMember: async (epoch) => (await link.run(IS_MEMBER, KEYS, [epoch])) === 1,
    isBootMarkerCurrent: async () => (await link.run(READ_BOOT, KEYS, [])) === boot,
    expire: async (epoch) => (await link.run(EXPIRE, KEYS, [changes, epoch])) === 1,
  }
}

const packFields = (fields: Omit<MemberFields, 'load'>): string => JSON.stringify({ protocol: PROTOCOL, ...fields })

type Listed = [now: number, version: string, records: string[], leases: string[], loads: string[]]

function readList([now, version, records, leases, loads]: Listed): MemberList {
  const ends = new Map(pairsOf(leases))
  const load = new Map(pairsOf(loads))
  const members = pairsOf(records).flatMap(([epoch, record]): Member[] => {
    const fields = readFields(record.slice(record.indexOf(' ') + 1))
    const expiresInMs = Number(ends.get(epoch) ?? 0) - now
    return fields ? [{ ...fields, load: Number(load.get(epoch) ?? 0), epoch: Number(epoch), expiresInMs }] : []
  })
  return { version: Number(version), members }
}

/** Reads a hash or a sorted set as Redis returns it: field, value, field, value. */
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
 * Another release may have written the fields: `undefined` for a role or state that this one does not know, and for a process that
 * speaks no version that it speaks.
 */
function readFields(text: string): Omit<MemberFields, 'load'> | undefined {
  const fields = parseJson(text)
  if (!isJsonObject(fields)) return undefined
  const { role, state, pid, protocol } = fields
  const knownRole = ROLES.find((known) => known === role)
  const knownState = STATES.find((known) => known === state)
  if (!knownRole || !knownState || !isCompatible(protocol)) return undefined
  return { role: knownRole, state: knownState, pid: Number(pid) }
}

const isCompatible = (protocol: unknown): boolean =>
  isJsonObject(protocol) && Number(protocol['min']) <= PROTOCOL.max && Number(protocol['max']) >= PROTOCOL.min
