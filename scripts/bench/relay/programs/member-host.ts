import { joinGateway, joinWorker, type SimulatedWorker } from '../../members/simulated.ts'
import { answerCalls, readOptions } from './answer.ts'

// Many members of a cluster in one process. Each has its own connections to Redis and speaks the whole protocol.

const { redisUrl } = readOptions()
const workers: SimulatedWorker[] = []
let pids = 0
let evicted = 0
const join = () => joinWorker(redisUrl, ++pids, () => evicted++)

answerCalls(
  { port: 0 },
  {
    /** Returns how many have joined: while this process is busy, Redis may seem to be unreachable. */
    async workers({ count }: { count: number }) {
      const joins = await Promise.allSettled(Array.from({ length: count }, join))
      const joined = joins.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
      workers.push(...joined)
      return joined.length
    },
    async gateways({ count }: { count: number }) {
      await Promise.all(Array.from({ length: count }, () => joinGateway(redisUrl, ++pids)))
    },
    evicted: () => evicted,
    adopted: () => workers.reduce((sum, { sessions }) => sum + sessions.size, 0),
  },
)
