import { expect } from 'chai'
import * as fc from 'fast-check'
import { check } from '../checker.ts'
import type { Entry, Frame, Rule } from '../history.ts'

type Rest = { t?: number; [field: string]: unknown }

/** A history entry. Without a time, its position is its time. */
const entry = (kind: Entry['kind'], rest: Rest = {}) => ({ kind, run: 'r', ...rest }) as Entry
const opened = (rest?: Rest) => entry('opened', rest)
const delta = (seq: number, rest?: Rest) => entry('frame', { seq, event: 'text_delta', ...rest })
const done = (seq: number, rest?: Rest) => entry('frame', { seq, event: 'done', isTerminal: true, ...rest })
const failed = (seq: number, code: string, rest?: Rest) =>
  entry('frame', { seq, event: 'error', code, isTerminal: true, ...rest })
const closed = (how = 'ended', rest?: Rest) => entry('closed', { how, ...rest })
const owned = (process = 'wk1', rest?: Rest) => entry('owned', { process, ...rest })
const killed = (signal: string, rest?: Rest) => entry('killed', { what: 'wk1', signal, ...rest })
const exited = (code: number | null, signal: string | null = null, rest?: Rest) =>
  entry('exited', { what: 'wk1', code, signal, ...rest })
const tool = (epoch: number, rest?: Rest) => entry('tool', { epoch, ...rest })
const step = (state: string, rest?: Rest) => entry('step', { plan: 'p', step: 's', epoch: 1, state, ...rest })
const ledger = (seq: number, run = 'r') => entry('ledger', { customer: 'c', seq, run })
const reply = (isAllow: boolean, status = 200) => entry('reply', { request: 'perm', isAllow, status })
const decision = (isAllow: boolean) => entry('decision', { request: 'perm', isAllow })
const claim = (by: string, isWon: boolean) => entry('claim', { what: 'session s', by, isWon })
const memory = (rssMiB: number) => entry('memory', { what: 'gw1', rssMiB })
const answer = (wrong: string, status: number) => entry('answer', { route: 'POST /agent/run', wrong, status })

const timed = (entries: readonly Entry[]) => entries.map((each, at) => ({ ...each, t: each.t ?? 1000 + at }))
const rulesIn = (entries: readonly Entry[]) => check(timed(entries)).map(({ rule }) => rule)

const listed = (entries: readonly Entry[]) =>
  check(entries)
    .map(({ rule, what }) => `${rule} ${what}`)
    .toSorted()

const frames = (count: number) =>
  timed([...Array.from({ length: count - 1 }, (_, i) => delta(i + 1)), done(count)]) as Frame[]

const CLEAN: Record<string, Entry[]> = {
  nothing: [],
  'a complete stream': [opened(), delta(1), delta(2), done(3), closed()],
  'frames without an opening or a close': [delta(1), done(2)],
  'many frames in one entry': [opened(), delta(1, { lastSeq: 500 }), done(501), closed()],
  'two streams of one run, where the second continues the first': [
    opened({ stream: 'a' }),
    delta(1, { stream: 'a', digest: 'x' }),
    closed('left', { stream: 'a' }),
    opened({ stream: 'b', after: 1 }),
    delta(2, { stream: 'b' }),
    done(3, { stream: 'b' }),
    closed('ended', { stream: 'b' }),
    entry('produced', { seq: 1, event: 'text_delta', digest: 'x' }),
  ],
  'a gap that the gateway reported': [opened({ after: 3 }), failed(3, 'stream_gap'), closed()],
  'a run that continues after a gateway’s error': [
    opened({ stream: 'a' }),
    delta(1, { stream: 'a' }),
    failed(1, 'relay_unavailable', { stream: 'a' }),
    closed('ended', { stream: 'a' }),
    tool(1),
    opened({ stream: 'b', after: 1 }),
    done(2, { stream: 'b' }),
    closed('ended', { stream: 'b' }),
  ],
  'a connection that broke because its gateway was killed': [
    opened(),
    delta(1),
    killed('SIGKILL', { what: 'gw1' }),
    closed('reset'),
  ],
  'a run that continues after its gateway drained': [
    opened({ stream: 'a', gateway: 'gw1' }),
    delta(1, { stream: 'a' }),
    killed('SIGTERM', { what: 'gw1' }),
    failed(1, 'worker_draining', { stream: 'a', repeats: true }),
    closed('ended', { stream: 'a' }),
    opened({ stream: 'b', gateway: 'gw2', after: 1 }),
    delta(2, { stream: 'b' }),
    tool(1),
    failed(3, 'worker_draining', { stream: 'b' }),
    closed('ended', { stream: 'b' }),
  ],
  'an incomplete frame when the gateway was killed': [
    opened({ gateway: 'gw1' }),
    delta(1),
    killed('SIGKILL', { what: 'gw1' }),
    closed('reset', { isCut: true }),
  ],
  'a worker’s death reported in time': [
    opened({ t: 0 }),
    owned('wk1', { t: 0 }),
    delta(1, { t: 1 }),
    killed('SIGKILL', { t: 100 }),
    exited(null, 'SIGKILL', { t: 101 }),
    failed(1, 'worker_lost', { t: 5000 }),
    closed('ended', { t: 5001 }),
  ],
  'a short freeze': [
    opened({ t: 0 }),
    owned('wk1', { t: 0 }),
    killed('SIGSTOP', { t: 100 }),
    killed('SIGCONT', { t: 3000 }),
    done(1, { t: 9000 }),
    closed('ended', { t: 9001 }),
  ],
  'an exit on SIGTERM, a restart and a kill': [
    killed('SIGTERM'),
    exited(0),
    killed('SIGKILL'),
    exited(null, 'SIGKILL'),
  ],
  'tool calls of increasing epochs': [tool(1, { call: 'a' }), tool(1, { call: 'b' }), tool(2, { call: 'c' })],
  'a tool call that was announced before the worker froze': [
    delta(1, { event: 'tool_use', t: 0 }),
    tool(1, { call: 'a', t: 1 }),
    delta(2, { event: 'tool_use', t: 2 }),
    failed(2, 'worker_lost', { t: 3 }),
    tool(1, { call: 'b', t: 900 }),
  ],
  'a customer’s run that is done and recorded': [
    opened({ customer: 'c' }),
    done(1),
    closed(),
    ledger(1),
    ledger(2, 'r2'),
  ],
  'a customer’s run that fell back to stateless': [
    opened({ customer: 'c' }),
    delta(1, { event: 'warning', code: 'customer_scope_fallback' }),
    done(2),
    closed(),
  ],
  'one winner of two replies': [reply(true), reply(false, 409), decision(true)],
  'a permission request without a reply': [decision(false), reply(true, 404)],
  'a reply to a run that was lost before the call': [reply(true), delta(1), failed(1, 'worker_lost')],
  'one winner of two claims': [claim('gw1', true), claim('gw2', false)],
  'an idempotent step run again': [
    step('running', { isIdempotent: true }),
    step('running', { isIdempotent: true }),
    step('done'),
  ],
  'bounded memory': [memory(100), memory(300), memory(90)],
  'refused tokens and bad input': [answer('token', 401), answer('token', 503), answer('input', 400)],
  'a tenant’s own data': [entry('sighting', { where: 'GET /flows', of: 't1', by: 't1' })],
}

const BROKEN: [Rule, string, Entry[]][] = [
  ['stream-without-end', 'never ends', [opened(), delta(1)]],
  ['stream-without-end', 'is closed without a terminal event', [opened(), delta(1), closed()]],
  ['stream-without-end', 'is not closed after it', [opened(), done(1)]],
  [
    'stream-without-end',
    'is closed long after it',
    [opened({ t: 0 }), done(1, { t: 0 }), closed('ended', { t: 1500 })],
  ],
  ['stream-without-end', 'is reset although nothing was killed', [opened(), delta(1), closed('reset')]],
  [
    'stream-without-end',
    'is reset by a process that was asked to end',
    [opened(), delta(1), killed('SIGTERM'), closed('reset')],
  ],
  [
    'stream-without-end',
    'is reset although another process was killed',
    [opened({ gateway: 'gw1' }), delta(1), killed('SIGKILL', { what: 'gw2' }), closed('reset')],
  ],
  [
    'stream-without-end',
    'outlives its worker by more than 5 s',
    [
      opened({ t: 0 }),
      owned('wk1', { t: 0 }),
      killed('SIGKILL', { t: 100 }),
      failed(0, 'worker_lost', { t: 5200 }),
      closed('ended', { t: 5201 }),
    ],
  ],
  [
    'stream-without-end',
    'outlives a frozen worker by more than 5 s',
    [
      opened({ t: 0 }),
      owned('wk1', { t: 0 }),
      killed('SIGSTOP', { t: 100 }),
      killed('SIGCONT', { t: 9000 }),
      done(1, { t: 9100 }),
      closed('ended', { t: 9101 }),
    ],
  ],
  ['ledger-mismatch', 'is done and not in the ledger', [opened({ customer: 'c' }), done(1), closed()]],
  ['ledger-mismatch', 'is twice in the ledger', [opened({ customer: 'c' }), done(1), closed(), ledger(1), ledger(2)]],
  ['ledger-mismatch', 'has a hole in the ledger', [ledger(1), ledger(3, 'r2')]],
  ['extra-effect', 'starts one tool call twice', [tool(1, { call: 'a' }), tool(1, { call: 'a' })]],
  ['extra-effect', 'has a tool call of an older epoch', [tool(2), tool(1)]],
  [
    'extra-effect',
    'has a tool call after its worker was lost',
    [delta(1, { t: 0 }), failed(1, 'worker_lost', { t: 1 }), tool(1, { t: 200 })],
  ],
  [
    'extra-effect',
    'has an unannounced tool call after its worker was lost',
    [
      delta(1, { event: 'tool_use', t: 0 }),
      failed(1, 'worker_lost', { t: 3 }),
      tool(1, { call: 'a', t: 900 }),
      tool(1, { call: 'b', t: 901 }),
    ],
  ],
  ['extra-effect', 'has a tool call after its end', [done(1, { t: 0 }), tool(1, { t: 200 })]],
  ['extra-effect', 'starts a step twice', [step('running'), step('running')]],
  [
    'extra-effect',
    'starts a step that was done',
    [step('running'), step('done'), step('running', { isIdempotent: true })],
  ],
  ['extra-effect', 'finishes a step twice', [step('running'), step('done'), step('done')]],
  ['tenant-crossing', 'is shown to another tenant', [entry('sighting', { where: 'GET /flows', of: 't1', by: 't2' })]],
  ['stream-altered', 'has a hole', [delta(1), done(3)]],
  ['stream-altered', 'has no beginning', [delta(2), done(3)]],
  ['stream-altered', 'has a duplicate', [delta(1), delta(1), done(2)]],
  ['stream-altered', 'has a hole after an entry of many frames', [delta(1, { lastSeq: 10 }), done(12)]],
  ['stream-altered', 'resumes too late', [opened({ after: 2 }), done(4), closed()]],
  ['stream-altered', 'ends within a frame', [opened(), done(1), closed('ended', { isCut: true })]],
  [
    'stream-altered',
    'repeats a number with the run’s own end',
    [opened({ after: 1 }), failed(1, 'timeout', { repeats: true }), closed()],
  ],
  ['stream-altered', 'has a gateway’s error of another number', [delta(1), failed(2, 'worker_lost')]],
  [
    'stream-altered',
    'differs from what was produced',
    [entry('produced', { seq: 1, event: 'done', digest: 'x' }), done(1, { digest: 'y' })],
  ],
  [
    'stream-altered',
    'has two terminal events of one number',
    [done(1, { stream: 'a' }), failed(1, 'internal', { stream: 'b' })],
  ],
  ['reply-not-honoured', 'answers two replies ok', [reply(true), reply(false), decision(true)]],
  ['reply-not-honoured', 'does not follow the reply that was answered ok', [reply(true), decision(false)]],
  ['reply-not-honoured', 'decides nothing after a reply that was answered ok', [reply(true), done(1)]],
  ['secret-leaked', 'shows a secret', [entry('leak', { where: 'gw1.log', secret: 'canary-7' })]],
  ['unexpected-exit', 'dies without a signal', [exited(1)]],
  [
    'unexpected-exit',
    'dies without a signal after a restart',
    [killed('SIGKILL'), exited(null, 'SIGKILL'), exited(null, 'SIGSEGV')],
  ],
  ['unexpected-exit', 'dies after a freeze', [killed('SIGSTOP'), killed('SIGCONT'), exited(1)]],
  ['unexpected-exit', 'is asked to end and crashes', [killed('SIGTERM'), exited(1)]],
  ['unexpected-exit', 'is asked to end and has to be killed', [killed('SIGTERM'), exited(null, 'SIGKILL')]],
  ['memory-growth', 'grows without a bound', [memory(100), memory(450), memory(200)]],
  ['forged-token-accepted', 'accepts a forged token', [answer('token', 200)]],
  ['events-after-end', 'continues after its terminal event', [done(1), delta(2)]],
  [
    'events-after-end',
    'continues in another stream',
    [done(1, { stream: 'a' }), delta(1, { stream: 'b', event: 'done' }), done(2, { stream: 'b' })],
  ],
  ['two-winners', 'has two winners', [claim('gw1', true), claim('gw2', true)]],
  ['allowed-without-reply', 'calls a tool that no reply allowed', [decision(true)]],
  ['allowed-without-reply', 'calls a tool whose reply came too late', [reply(true, 404), decision(true)]],
  ['wrong-refusal', 'answers bad input with a 500', [answer('input', 500)]],
  ['wrong-refusal', 'accepts bad input', [answer('input', 200)]],
  ['wrong-refusal', 'answers a forged token with a 500', [answer('token', 500)]],
]

describe('the checker', () => {
  for (const [name, history] of Object.entries(CLEAN))
    it(`accepts ${name}`, () => {
      expect(check(timed(history))).to.deep.equal([])
    })

  for (const [rule, name, history] of BROKEN)
    it(`reports what ${name} as ${rule}, with evidence`, () => {
      const violations = check(timed(history)).filter((violation) => violation.rule === rule)
      expect(violations, `found ${rulesIn(history).join()}`).to.have.lengthOf(1)
      expect(violations[0]?.evidence).to.not.have.lengthOf(0)
      for (const shown of violations[0]?.evidence ?? []) expect(timed(history)).to.deep.include(shown)
    })

  it('finds the same violations in whatever order the logs are merged', () => {
    const history = timed(
      BROKEN.flatMap(([, , entries], at) => entries.map((each) => ({ ...each, run: `r${at}` }) as Entry)),
    )
    const byTime = listed(history)
    expect(listed(history.toReversed())).to.deep.equal(byTime)
    expect(byTime).to.have.length.above(30)
  })

  const stream = fc.integer({ min: 2, max: 60 })
  it('reports any one frame that is lost, duplicated or exchanged as stream-altered', () => {
    const what = fc.constantFrom('lost', 'duplicated', 'exchanged')
    fc.assert(
      fc.property(stream, fc.nat(), what, (count, place, fault) => {
        const history = frames(count)
        const at = place % (count - 1)
        const [one, two] = history.slice(at, at + 2)
        if (!one || !two) throw new Error('the position is within the stream')
        if (fault === 'lost') history.splice(at, 1)
        if (fault === 'duplicated') history.splice(at, 0, one)
        if (fault === 'exchanged') history.splice(at, 2, { ...two, t: one.t }, { ...one, t: two.t })
        expect(rulesIn(history)).to.include('stream-altered')
      }),
    )
  })

  it('accepts any complete streams, however they are interleaved', () => {
    fc.assert(
      fc.property(fc.array(stream, { maxLength: 5 }), fc.integer({ min: 1, max: 7 }), (counts, stride) => {
        const history = counts.flatMap((count, run) =>
          frames(count).map((frame, at) => ({ ...frame, run: `r${run}`, t: at * stride + run })),
        )
        expect(check(history)).to.deep.equal([])
      }),
    )
  })
})
