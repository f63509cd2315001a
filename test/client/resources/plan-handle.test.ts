import { expect } from 'chai'
import { Transport } from '../../../shared/client/http/transport.ts'
import { createPlan, type PlanProgress } from '../../../shared/client/resources/plan-handle.ts'
import { type Answer, breakOff, fakeServer, json, type SentEvent, stream } from '../fake-server.ts'

type Statuses = { a: string; b: string }
const plan =
  (status: string, step_statuses: Statuses, more: object = {}): Answer =>
  () =>
    json({ id: 'plan_1', status, steps: [{ id: 'a', title: 'first' }, { id: 'b' }], step_statuses, ...more })
const started = (id: number, step_id: string): SentEvent => ({ id, event: 'step_started', data: { step_id } })
const ended = (id: number, step_id: string, status = 'done', error?: string): SentEvent => ({
  ...{ id, event: 'step_ended', data: { step_id, status, error } },
})
const over = (id: number): SentEvent => ({ id, event: 'plan_ended', data: { status: 'done' } })
const streams =
  (...events: SentEvent[]): Answer =>
  () =>
    stream(events)

function handleOn(...answers: Answer[]) {
  const { options, paths, sent } = fakeServer(answers)
  return { handle: createPlan(new Transport(options), 'plan_1'), paths, sent }
}

async function progressOf(...answers: Answer[]) {
  const seen: PlanProgress[] = await all(handleOn(...answers).handle.progress())
  return seen.map(({ done, total, status, steps }) => [
    status,
    `${done}/${total}`,
    steps.map((step) => (step.error ? `${step.status}: ${step.error}` : step.status)).join(' '),
  ])
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

const NEW = { a: 'pending', b: 'pending' }
const ENDED = { a: 'done', b: 'failed' }

describe('the progress of a plan at the client', () => {
  it('is shown when it begins, after each change of a step, and at the end as the plan is read then', async () => {
    const events = [
      { id: 1, event: 'plan_started', data: {} },
      started(2, 'a'),
      ended(3, 'a'),
      started(4, 'b'),
      ended(5, 'b', 'failed', 'no'),
      over(6),
    ]
    expect(await progressOf(plan('queued', NEW), streams(...events), plan('partial', ENDED))).to.deep.equal([
      ['queued', '0/2', 'pending pending'],
      ['running', '0/2', 'running pending'],
      ['running', '1/2', 'done pending'],
      ['running', '1/2', 'done running'],
      ['running', '2/2', 'done failed: no'],
      ['partial', '2/2', 'done failed'],
    ])
  })

  it('of a plan that has ended is shown once, and its events are not read', async () => {
    expect(await progressOf(plan('done', { a: 'done', b: 'skipped' }))).to.deep.equal([['done', '2/2', 'done skipped']])
  })

  it('leaves out the replayed events of what the plan has shown already, and of steps that it does not have', async () => {
    const replayed = [started(1, 'a'), ended(2, 'a', 'failed'), started(3, 'b'), started(4, 'x'), over(5)]
    expect(
      await progressOf(plan('running', { a: 'done', b: 'running' }), streams(...replayed), plan('done', ENDED)),
    ).to.deep.equal([
      ['running', '1/2', 'done running'],
      ['done', '2/2', 'done failed'],
    ])
  })

  it('has the titles and the errors of the steps', async () => {
    const { handle } = handleOn(plan('done', ENDED, { step_errors: { b: 'it broke' } }))
    const [only] = await all(handle.progress())
    expect(only?.steps).to.deep.equal([
      { id: 'a', status: 'done', title: 'first' },
      { id: 'b', status: 'failed', error: 'it broke' },
    ])
  })
})

describe('a plan at the client', () => {
  it('has its events once and in order over connections that break', async () => {
    const { handle, sent } = handleOn(
      streams(started(1, 'a'), ended(2, 'a')),
      breakOff,
      streams(ended(2, 'a'), over(3)),
    )
    const events = await all(handle.events())
    expect(events.map(({ id, event }) => `${id} ${event}`)).to.deep.equal([
      '1 step_started',
      '2 step_ended',
      '3 plan_ended',
    ])
    expect(sent.map(({ headers }) => headers.get('last-event-id'))).to.deep.equal([null, '2', '2'])
  })

  it('resolves with the plan once it has ended', async () => {
    const { handle } = handleOn(plan('running', NEW), streams(over(1)), plan('failed', ENDED))
    expect((await handle.result()).status).to.equal('failed')
  })

  it('is cancelled, and submitted again as a plan of its own', async () => {
    const { handle, paths } = handleOn(
      () => json({}),
      () => json({ id: 'plan/2' }),
      plan('done', ENDED),
    )
    await handle.cancel()
    const retried = await handle.retry()
    await retried.get()
    expect(retried.id).to.equal('plan/2')
    expect(paths()).to.deep.equal(['POST /plans/plan_1/cancel', 'POST /plans/plan_1/retry', 'GET /plans/plan%2F2'])
  })
})
