import type { Bus } from '../../shared/cluster/bus/bus.ts'
import { createRedisMembers } from '../../shared/cluster/members/redis-members.ts'
import { createRedisMovedRuns, createRedisOwners } from '../../shared/cluster/owners/redis-owners.ts'
import { openWorkerPermissionStore } from '../../shared/cluster/permissions/redis-store.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { openRedisLink, type RedisLink } from '../../shared/platform/redis/link.ts'
import { RedisEventLog } from '../../shared/tenancy/events/redis-log.ts'
import { createRedisRunPlaces } from '../../shared/tenancy/limits/redis-places.ts'
import { busContract } from '../contract/bus.ts'
import { itIsAnEventLog } from '../contract/event-log.ts'
import { membersContract } from '../contract/members.ts'
import { movedRunsContract, RUN } from '../contract/moved-runs.ts'
import { ownersContract, S1 } from '../contract/owners.ts'
import { permissionListContract } from '../contract/permission-list.ts'
import { permissionStoreContract } from '../contract/permission-store.ts'
import { placesContract } from '../contract/run-places.ts'
import { useRedisCluster } from '../support/redis-cluster.ts'

describe('a Redis Cluster (D33)', () => {
  const redis = useRedisCluster()
  const opened: { close(): Promise<void> }[] = []
  afterEach(async () => {
    for (const each of opened.splice(0).toReversed()) await each.close()
  })

  async function connect(): Promise<RedisLink> {
    const link = await openRedisLink('redis://unused', { cluster: redis.nodes })
    opened.push(link)
    return link
  }
  const secsLeft = async (key: string) => Number((await redis.send(['TTL', key], key))[0])

  describe('as the bus', () => {
    busContract({
      connect: async (): Promise<Bus> => connect(),
      async cut() {
        for (const server of redis.servers) await server.kill('SIGKILL')
      },
      async mend() {
        for (const server of redis.servers) await server.restart()
        await redis.whole()
      },
    })
  })

  describe('for the members', () => {
    membersContract({
      async connect() {
        const bus = await connect()
        return { bus, members: createRedisMembers(bus) }
      },
      async lapse() {
        const [epochs = []] = (await redis.send(['HKEYS', 'ae:{members}'], 'ae:{members}')) as [string[]?]
        for (const epoch of epochs) await redis.send(['ZADD', 'ae:{members}:leases', '0', epoch], 'ae:{members}')
      },
      async loseKeys() {
        await redis.send(['FLUSHALL'])
      },
    })
  })

  describe('for sessions, requests, places and events', () => {
    let link: RedisLink
    beforeEach(async () => {
      link = await connect()
    })

    ownersContract(() => ({
      owners: createRedisOwners(link),
      secsLeft: () => secsLeft(`ae:session:${S1.tenant} ${S1.id}`),
    }))
    movedRunsContract(() => ({
      movedRuns: createRedisMovedRuns(link),
      secsLeft: () => secsLeft(`ae:moved:${RUN.tenant} ${RUN.id}`),
    }))
    const openRequests = async () => openWorkerPermissionStore(await connect(), 1)
    permissionStoreContract(openRequests)
    permissionListContract(openRequests)
    placesContract(() => createRedisRunPlaces(link))
    itIsAnEventLog(async () => {
      const log = new RedisEventLog(await connect(), createLog({ level: 'error', write: () => {} }))
      opened.push(log)
      return log
    })
  })
})
