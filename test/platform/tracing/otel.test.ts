import { expect } from 'chai'
import { type OpenedRecorder, openOtelRecorder } from '../../../shared/platform/tracing/otel.ts'
import { startTraceCollector, type TraceCollector } from '../../support/trace-collector.ts'

const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }

describe('spans that OpenTelemetry records', () => {
  let collector: TraceCollector
  let opened: OpenedRecorder
  let before: NodeJS.ProcessEnv

  beforeEach(async () => {
    collector = await startTraceCollector()
    before = { ...process.env }
    Object.assign(process.env, collector.env) // The packages read them there.
    opened = await openOtelRecorder({ serviceName: 'gateway', protocol: 'http/json', onProblem: () => {} })
  })
  afterEach(async () => {
    await opened.close()
    for (const name of Object.keys(collector.env)) delete process.env[name]
    Object.assign(process.env, before)
    await collector.close()
  })

  it('D15: are children of their parent, with the name and the attributes that they have at their end', async () => {
    const span = opened.recorder.start('run', {
      ...{ kind: 'server', attributes: { model: 'm', none: undefined } },
      parent: { ...CALLER, isSampled: true },
    })
    span.set({ turns: 2, tools: ['a', 'b'], left: undefined })
    span.rename('run of m')
    span.end()
    const { parentSpanId, ...seen } = await collector.wait('the span', ({ name }) => name === 'run of m')
    expect(seen).to.deep.include({ traceId: CALLER.traceId, service: 'gateway', isError: false })
    expect([parentSpanId, span.context.isSampled]).to.deep.equal([CALLER.spanId, true])
    expect(seen.attributes).to.deep.equal({ model: 'm', turns: 2, tools: ['a', 'b'] })
  })

  it('begin a trace of their own without a parent, and are not exported when the caller’s trace is not recorded', async () => {
    const skipped = opened.recorder.start('skipped', { parent: { ...CALLER, isSampled: false } })
    skipped.end()
    const own = opened.recorder.start('own', { parent: undefined })
    own.end()
    const { traceId } = await collector.wait('the span', ({ name }) => name === 'own')
    expect(traceId).to.equal(own.context.traceId).and.not.equal(CALLER.traceId)
    expect([skipped.context.isSampled, collector.spans.length]).to.deep.equal([false, 1])
  })

  it('have the code of their failure, and names and values of a bounded length', async () => {
    const span = opened.recorder.start('x'.repeat(1_000), {
      attributes: { long: 'y'.repeat(9_000) },
      parent: undefined,
    })
    span.end('timeout')
    const seen = await collector.wait('the span', ({ isError }) => isError)
    expect([seen.name.length, String(seen.attributes['long']).length]).to.deep.equal([257, 1_024])
    expect(seen.attributes['error.type']).to.equal('timeout')
  })
})

describe('a collector that is away', () => {
  it('is reported once, and does not make the end of the process a failure', async () => {
    const problems: string[] = []
    const onProblem = (message: string) => problems.push(message)
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_TIMEOUT: '100' }
    Object.assign(process.env, env)
    const { recorder, close } = await openOtelRecorder({ serviceName: 'gateway', protocol: 'http/json', onProblem })
    for (const name of Object.keys(env)) delete process.env[name]
    recorder.start('a', { parent: undefined }).end()
    await close()
    expect(problems).to.have.length(1)
    expect(problems[0]).to.match(/ECONNREFUSED|timed? ?out/i)
  })
})
