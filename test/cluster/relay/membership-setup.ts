import { Lease } from '../../../shared/cluster/members/lease.ts'
import type { Member, Members, Renewal } from '../../../shared/cluster/members/members.ts'
import type { MembershipTimes } from '../../../shared/cluster/members/membership-times.ts'
import { Membership } from '../../../shared/cluster/relay/membership.ts'
import { Transport } from '../../../shared/cluster/relay/wire/transport.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { member as memberOf } from '../members/member.ts'

/** The epoch of the process under test. */
export const OWN = 1
const TIMES: MembershipTimes = { tickMs: 50, renewMs: 90, rebuildMs: 150, steadyMs: 400, maxTickDelayMs: 500 }

export const member = (epoch: number, fields?: Partial<Member>): Member => memberOf('gateway', epoch, fields)

export type Options = {
  /** Answers the listings, which are counted from 1. */
  list?: (count: number) => Member[] | Promise<Member[]>
  renew?: () => Renewal
  members?: Partial<Members>
  lease?: Lease
  times?: Partial<MembershipTimes>
}

/** A membership of epoch 1 in front of fake members. `calls` records what it called, in order. */
export function setUp({
  list = () => [member(OWN)],
  renew = () => 'renewed',
  members,
  lease = new Lease(),
  times,
}: Options = {}) {
  const calls: string[] = []
  const lost: number[] = []
  const known: number[][] = []
  let [listings, versions, epochs] = [0, 1, 0]
  const bus = {
    async publish(channel: string) {
      calls.push(`publish ${channel}`)
      return 1
    },
    subscribe: async (channel: string) => void calls.push(`subscribe ${channel}`),
    unsubscribe: async (channel: string) => void calls.push(`unsubscribe ${channel}`),
    resubscribe: async () => void calls.push('resubscribe'),
    reconnect: () => void calls.push('reconnect'),
  }
  const transport = new Transport(
    { role: 'worker', bus, lease, metrics: NO_METRICS },
    { onRecord: () => {}, onUndelivered: () => {} },
  )
  const membership = new Membership(
    {
      transport,
      members: {
        join: async () => ++epochs,
        renew: async () => ({ outcome: renew(), version: versions }),
        leave: async (epoch) => void calls.push(`leave ${epoch}`),
        list: async () => ({ version: versions, members: await list(++listings) }),
        look: async () => ({ version: ++versions, lapsed: [], loads: [] }), // Each look finds a lost message, so the members are listed.
        watch: async () => {},
        isMember: async () => true,
        isBootMarkerCurrent: async () => true,
        async expire(epoch) {
          calls.push(`expire ${epoch}`)
          return true
        },
        ...members,
      },
      lease,
      log: SILENT_LOG,
      describe: () => ({ role: 'worker', state: 'active', load: 0, pid: 1 }),
    },
    {
      onMembers(all) {
        known.push(all.map(({ epoch }) => epoch))
        calls.push(`members ${known.at(-1)}`)
      },
      onMemberLost(epoch) {
        lost.push(epoch)
        calls.push(`lost ${epoch}`)
      },
      onEvicted: () => calls.push(`evicted ${membership.epoch}`),
      onKeysLost: () => calls.push('emptied'),
    },
    { ...TIMES, ...times },
  )
  return { membership, transport, lease, calls, lost, known, listings: () => listings }
}

/** Starts memberships, and stops them after each test. */
export function useStarts(): (membership: Membership) => Promise<void> {
  const started: Membership[] = []
  afterEach(async () => {
    for (const membership of started.splice(0)) await membership.stop()
  })
  return async (membership) => {
    started.push(membership)
    await membership.start()
  }
}
