import { expect } from 'chai'
import { callApi, initOf } from '../../support/api-client.ts'
import { EventStream, type Frame } from '../../support/event-stream.ts'
import { until } from '../../support/until.ts'
import type { Part } from '../part.ts'
import type { World } from '../world.ts'

/** A run of about 15 seconds. */
const LONG = Array.from({ length: 30 }, (_, n) => `/say part ${n}\n/sleep 500`).join('\n')
const WORKERS = ['worker-1', 'worker-2', 'worker-3']
const AGAIN_MS = 60_000

/** Containers that are killed or restarted, and what their users see. */
export const failures: readonly Part[] = [
  { promise: 'docker kill of a worker with DURABILITY=runs: every stream goes on to its end', run: killWorker },
  { promise: 'docker kill of a gateway: clients resume their streams at the other one', run: killGateway },
  { promise: 'a Redis that is away makes a process unhealthy, and its return healthy', run: stopRedis },
  { promise: 'a restart of Redis ends no stream', run: (world) => restart(world, 'redis') },
  { promise: 'a restart of MongoDB ends no stream, and flows run again', run: (world) => restart(world, 'mongo') },
  { promise: 'after down and up the session, the flow, the plans and the records are there', run: downAndUp },
]

async function killWorker(world: World): Promise<void> {
  const streams = await openStreams(world)
  await world.engine.docker(['kill', world.nameOf('worker-1')])
  const ends = await Promise.all(streams.map(readToEnd))
  expect(ends.map(({ last }) => last)).to.deep.equal(streams.map(() => 'done'))
  expect(
    ends.some(({ warnings }) => warnings.includes('run_recovered')),
    'one of the runs was at the worker',
  ).to.equal(true)
  await world.compose('up', '--detach', '--wait')
}

/** Three sessions and three one-shot runs for each worker, so that each has one in all likelihood. Resolves when all have begun. */
async function openStreams({ url, client }: World): Promise<EventStream[]> {
  const paths = await Promise.all(
    WORKERS.flatMap(() => [1, 2, 3]).map(async () => `/sessions/${(await client.sessions.open()).id}/messages`),
  )
  const all = [...paths, ...paths.map(() => '/agent/run')]
  const streams = await Promise.all(all.map((path) => EventStream.open(url + path, initOf('POST', { prompt: LONG }))))
  for (const stream of streams) while ((await stream.next())?.event !== 'text_delta');
  return streams
}

async function readToEnd(stream: EventStream): Promise<{ last: string | undefined; warnings: unknown[] }> {
  const frames: Frame[] = await stream.all()
  const warnings = frames.filter(({ event }) => event === 'warning').map(({ data }) => data['code'])
  return { last: frames.at(-1)?.event, warnings }
}

async function killGateway(world: World): Promise<void> {
  const runs = Array.from({ length: 6 }, () => world.client.run({ prompt: LONG }))
  const results = runs.map((run) => run.result())
  await until(() => runs.every(({ lastEventId }) => lastEventId > 2), { what: 'every run to begin' })
  await world.engine.docker(['kill', world.nameOf('gateway-1')])
  for (const { stopReason, output } of await Promise.all(results)) {
    expect(stopReason).to.equal('end_turn')
    expect(output).to.include('part 0').and.include('part 29')
  }
  await world.compose('up', '--detach', '--wait')
}

async function stopRedis(world: World): Promise<void> {
  await world.compose('stop', 'redis')
  await world.untilHealth('gateway-1', 'unhealthy')
  await world.compose('start', 'redis')
  for (const service of await world.services()) await world.untilHealth(service, 'healthy')
  await untilServed(world)
}

async function restart(world: World, service: 'redis' | 'mongo'): Promise<void> {
  const streams = await openStreams(world)
  await world.compose('restart', service)
  const ends = await Promise.all(streams.map(readToEnd))
  expect(ends.map(({ last }) => last)).to.deep.equal(streams.map(() => 'done'))
  await world.compose('up', '--detach', '--wait')
  await untilServed(world)
}

/** Waits until a run and a flow succeed. */
async function untilServed({ url, client }: World): Promise<void> {
  const isServed = async () => {
    const run = await client
      .run({ prompt: '/say Hi' })
      .result()
      .catch(() => undefined)
    const init = initOf('POST', { provider_instance: 'main', input: { text: 'a text' } })
    const { status } = await callApi(`${url}/flows/kept/run`, init)
    return run?.stopReason === 'end_turn' && status === 200
  }
  await until(isServed, { what: 'a run and a flow to succeed', withinMs: AGAIN_MS, everyMs: 500 })
}

async function downAndUp(world: World): Promise<void> {
  const before = await kept(world)
  expect(before.plans, JSON.stringify(before)).not.to.deep.equal([])
  await world.stopOutside()
  await world.compose('down')
  await world.compose('up', '--detach', '--wait')
  await world.startOutside()
  expect(await kept(world)).to.deep.equal(before)
  await untilServed(world)
}

/** What lasts: the session's length, the flows, and the ids of plans, runs and dispatches. */
async function kept({ client, url }: World) {
  const session = await (await client.sessions.open('kept')).get()
  const ids = async (path: string) => {
    const { body } = await callApi(url + path, initOf('GET'))
    return JSON.stringify(body)
      .match(/"(?:name|id|run_id|trace_id)":"[^"]+"/g)
      ?.toSorted()
  }
  return {
    messages: session.message_count,
    flows: await ids('/flows'),
    plans: await ids('/plans'),
    runs: await ids('/runs?state=ended'),
    dispatches: await ids('/dispatches'),
  }
}
