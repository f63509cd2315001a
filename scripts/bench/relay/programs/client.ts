import { createConnect } from '../client/connection.ts'
import { Crowd, type CrowdOrder } from '../client/crowd.ts'
import { atRate, closedLoop, oneAtATime } from '../client/starts.ts'
import type { Target } from '../target.ts'
import { answerCalls } from './answer.ts'

/** The client process, which reads the streams of every measured server. ../load.ts calls it. */
const connect = createConnect()
const crowd = new Crowd(connect)
answerCalls(
  { port: 0 },
  {
    open: (order: CrowdOrder) => crowd.open(order),
    count: ({ ms, except }: { ms: number; except: number }) => crowd.count(ms, except),
    latencies: ({ ms }: { ms: number }) => crowd.latencies(ms),
    setReading: (which: { isReading: boolean; from: number; to: number }) => crowd.setReading(which),
    ends: ({ withinMs }: { withinMs: number }) => crowd.ends(withinMs),
    report: () => crowd.report(),
    close: () => crowd.close(),
    oneAtATime: ({ target, count }: { target: Target; count: number }) => oneAtATime(connect, target, count),
    atRate: ({ target, ...how }: { target: Target; perSecond: number; ms: number }) => atRate(connect, target, how),
    closedLoop: ({ target, ...how }: { target: Target; callers: number; ms: number }) =>
      closedLoop(connect, target, how),
  },
)
