import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { Child } from '../support/child.ts'
import { EventStream } from '../support/event-stream.ts'
import { useOpened } from '../support/fixture.ts'
import { useMongo } from '../support/mongo.ts'
import { startClusterProcesses, useProduct } from '../support/product.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { type CollectedSpan, startTraceCollector } from '../support/trace-collector.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'
const headers = { traceparent: `00-${TRACE}-${CALLER}-01`, 'x-request-id': 'request-of-the-test' }

describe('traces of a cluster', () => {
  const mongo = useMongo()

  const collector = useOpened(startTraceCollector)
  const product = useProduct(() =>
    startClusterProcesses({
      ...collector.env,
      ...mongo.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
      LOG_LEVEL: 'debug',
    }),
  )
  before(async () => {
    product.model.otherwise(() => 'fine')
  })

  const parentOf = ({ parentSpanId }: CollectedSpan) =>
    collector.wait('the parent', ({ spanId }) => spanId === parentSpanId)

  /** The names and services from a span up to the one that has no parent here. */
  async function ancestry(span: CollectedSpan): Promise<string[]> {
    const line = `${span.service} ${span.name}`
    const isTop = span.parentSpanId === undefined || span.parentSpanId === CALLER
    return isTop ? [line] : [...(await ancestry(await parentOf(span))), line]
  }

  it('D15.2: a run is one trace from the caller over gateway and worker to the model calls and the tool, with parents right', async () => {
    product.model.answer([{ tool: 'TodoWrite', input: { todos: [] } }])
    const stream = await product.run({ prompt: 'a prompt that no span repeats', metadata: { team: 'red' } }, headers)
    await stream.all()
    const run = await collector.wait('the run', ({ attributes }) => attributes['agent_engine.run_id'] === stream.runId)
    expect(run.attributes).to.include({ 'agent_engine.metadata.team': 'red' })
    const isBelow = (span: CollectedSpan) => span.parentSpanId === run.spanId
    const tool = await collector.wait('the tool', (span) => isBelow(span) && span.name === 'execute_tool TodoWrite')
    await collector.wait(
      'both model calls',
      () => collector.spans.filter((span) => isBelow(span) && span.name.startsWith('chat')).length === 2,
    )
    const calls = collector.spans.filter((span) => isBelow(span) && span.name === 'chat test-model')
    await collector.wait('the request', ({ name }) => name === 'POST /agent/run')
    expect(await ancestry(tool)).to.deep.equal([
      'agent-engine-gateway POST /agent/run',
      'agent-engine-worker invoke_agent',
      'agent-engine-worker execute_tool TodoWrite',
    ])
    expect(new Set([run, tool, ...calls].map(({ traceId }) => traceId))).to.deep.equal(new Set([TRACE]))
    expect(calls[0]?.attributes).to.include({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai-compatible',
      'gen_ai.request.model': 'test-model',
    })
    expect(calls[0]?.attributes['gen_ai.response.finish_reasons']).to.deep.equal(['tool_use'])
    expect(calls[0]?.attributes['gen_ai.usage.input_tokens']).to.be.above(0)
    expect(tool.attributes).to.include({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'TodoWrite' })
    expect(JSON.stringify(collector.spans)).not.to.include('no span repeats')
  })

  it('D15.2: a submitted plan is one trace from the gateway over the queue to the executor and its steps', async () => {
    const steps = [
      { id: 'a', prompt: 'hello' },
      { id: 'b', prompt: 'hello', depends_on: ['a'] },
    ]
    const { body } = await product.call('POST', '/plans/submit', { steps })
    const { id } = body as { id: string }
    await (await product.stream(`/plans/${id}/events`)).all()
    const plan = await collector.wait('the plan', ({ name }) => name === 'execute_plan')
    const step = await collector.wait('the second step', ({ attributes }) => attributes['agent_engine.step_id'] === 'b')
    const call = await collector.wait('its model call', ({ parentSpanId }) => parentSpanId === step.spanId)
    expect(await ancestry(call)).to.deep.equal([
      'agent-engine-gateway POST /plans/submit',
      'agent-engine-executor execute_plan',
      'agent-engine-executor invoke_agent step',
      'agent-engine-executor chat test-model',
    ])
    expect(plan.traceId).to.equal(call.traceId)
  })

  it('D15.2: a flow is one trace, too, and a sub-agent’s calls are below the tool that started it', async () => {
    const url = product.model.url
    const instance = { type: 'openai-compatible', url, key: 'sk-0123456789' }
    expect((await product.call('PUT', '/config/instances/main', instance)).status).to.equal(200)
    const request = { provider_instance: 'main', model: 'm-flow', input: { text: 'a long text' } }
    expect(await product.call('POST', '/flows/summarize/run', request)).to.deep.include({ status: 200 })
    const call = await collector.wait('the model call of the flow', ({ name }) => name === 'chat m-flow')
    expect(await ancestry(call)).to.deep.equal([
      'agent-engine-gateway POST /flows/:name/run',
      'agent-engine-executor execute_flow',
      'agent-engine-executor chat m-flow',
    ])
    product.model.answer([{ tool: 'Agent', input: { description: 'd', prompt: 'p' } }])
    await (await product.run({ prompt: 'hi' })).all()
    const child = await collector.wait('the sub-agent', ({ name }) => name === 'invoke_agent sub-agent')
    expect((await parentOf(child)).name).to.equal('execute_tool Agent')
    await collector.wait('its model call', ({ parentSpanId }) => parentSpanId === child.spanId)
  })

  it('D15.2: names and values that come from outside are cut', async () => {
    product.model.answer([{ tool: 'T'.repeat(20_000), input: {} }])
    const stream = await product.run({ prompt: 'long' })
    await stream.all()
    await collector.wait('the run', ({ attributes }) => attributes['agent_engine.run_id'] === stream.runId)
    const tool = await collector.wait('the tool', ({ name }) => name.includes('TTT'))
    expect(tool.name)
      .to.have.lengthOf(257)
      .and.match(/^execute_tool T+…$/)
    expect(String(tool.attributes['gen_ai.tool.name'])).to.have.lengthOf(1_024)
  })

  it('a model call that fails is marked with its code, and log lines carry the ids of the request and its trace', async () => {
    product.model.answer({ status: 401, message: 'wrong key' })
    const stream = await product.run({ prompt: 'hi' }, headers)
    await stream.all()
    const isRun = ({ attributes }: CollectedSpan) => attributes['agent_engine.run_id'] === stream.runId
    const run = await collector.wait('the run', isRun)
    const call = await collector.wait('its model call', ({ parentSpanId }) => parentSpanId === run.spanId)
    expect([run, call].map(({ isError, attributes }) => [isError, attributes['error.type']])).to.deep.equal([
      [true, 'provider_auth'],
      [true, 'provider_auth'],
    ])
    const lines = product.log.filter((line) => line.includes(stream.runId)).map((line) => JSON.parse(line) as object)
    expect(lines.find((line) => 'msg' in line && line.msg === 'request')).to.include({
      request_id: 'request-of-the-test',
      otel_trace_id: TRACE,
    })
  })
})

describe('traces of the standalone form', () => {
  it('are exported as protobuf by default, and the last spans when the process ends', async () => {
    const collector = await startTraceCollector()
    await using folder = await makeTempFolder()
    const { OTEL_EXPORTER_OTLP_PROTOCOL: _json, OTEL_BSP_SCHEDULE_DELAY: _soon, ...env } = collector.env
    const main = new URL('../../services/standalone/main.ts', import.meta.url).pathname
    const settings = {
      DATA_DIR: folder.path,
      PORT: '0',
      OPS_PORT: '0',
      MODEL_PROVIDER: 'demo',
      DRAIN_SECS: '0',
      RUN_RESUME_SECS: '0',
    }
    const child = new Child(process.execPath, [main], { ...env, ...settings })
    try {
      const { url } = JSON.parse(await child.line(/"msg":"listening"/)) as { url: string }
      const stream = await EventStream.open(`${url}/agent/run`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ prompt: '/say hi' }),
      })
      await stream.all()
      expect(await child.end()).to.equal(0)
      expect(collector.otherTypes).to.deep.equal(['application/x-protobuf'])
    } finally {
      await child.end('SIGKILL')
      await collector.close()
    }
  })
})
