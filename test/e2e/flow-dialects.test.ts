import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Role, type Task, TaskState } from '@a2a-js/sdk'
import { ClientFactory } from '@a2a-js/sdk/client'
import { Client, type ResourceLink, StreamableHTTPClientTransport, type Tool } from '@modelcontextprotocol/client'
import { expect } from 'chai'
import { DEFINITION, GOOD, newName, textSchema, useFlows } from '../support/flows.ts'
import { inBothForms, startStandalone } from '../support/product.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

/** The protocol of today, and the one of before, which is tested in one of the forms. */
const MODES = ['2026-07-28', '2025-11-25'] as const
const CLIENT = { name: 'test', version: '1' }

type Content = { type: string; text: string }[]

/** The official clients, unmodified, against the published flows of a tenant. */
inBothForms('flows in other formats', (startProduct, form) => {
  const bench = useFlows(startProduct, form, { DIALECTS: 'mcp,a2a' })
  const clients: Client[] = []
  const url = () => new URL(`${bench.product.url}/mcp`)

  async function connect(mode: (typeof MODES)[number], headers: Record<string, string> = {}): Promise<Client> {
    const client = new Client(CLIENT, { versionNegotiation: { mode: mode === MODES[0] ? { pin: mode } : 'legacy' } })
    clients.push(client)
    await client.connect(new StreamableHTTPClientTransport(url(), { requestInit: { headers } }))
    return client
  }

  before(async () => {
    const { status, text } = await bench.call('PUT', '/config/engine', {
      routing: { main: { instance: 'main', model: 'm-1' } },
    })
    expect(status, text).to.equal(200)
  })
  beforeEach(() => bench.main.otherwise(() => GOOD))
  afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())))

  for (const mode of form === 'standalone' ? MODES : MODES.slice(0, 1)) {
    describe(`protocol ${mode}`, () => {
      it('published flows are tools with the schemas of their inputs and outputs, and drafts are none', async () => {
        const name = await bench.publish({
          ...DEFINITION,
          input_schema: { ...textSchema('text'), description: 'Answers a text.' },
        })
        const draft = newName()
        await bench.call('PUT', `/flows/${draft}`, DEFINITION)
        const { tools } = await (await connect(mode)).listTools()
        const tool = tools.find((each) => each.name === name) as Tool
        expect(tool.description).to.equal('Answers a text.')
        expect(tool.inputSchema).to.deep.include({ type: 'object', required: ['text'] })
        expect(tool.outputSchema).to.deep.include({ type: 'object', required: ['answer'] })
        expect(tools.map((each) => each.name))
          .to.include('summarize')
          .and.not.include(draft)
      })

      it('a call runs the flow, and its output is the structured content', async () => {
        const name = await bench.publish(DEFINITION)
        const client = await connect(mode)
        await client.listTools() // The client then checks outputs against the schemas.
        const result = await client.callTool({ name, arguments: { text: 'hello' } })
        expect(result.isError ?? false).to.equal(false)
        expect(result.structuredContent).to.deep.equal({ answer: 'yes' })
        expect((result.content as Content)[0]?.text).to.equal('{"answer":"yes"}')
        const { _meta: meta } = result
        const { status, body } = await bench.call('GET', `/dispatches/${meta?.['agent-engine/trace_id']}`)
        expect(status).to.equal(200)
        expect(body).to.deep.include({ status: 'ok', input: { text: 'hello' } })
      })

      it('D50.6: a file that the flow has delivered is a link of the result, which the server reads', async () => {
        const name = await bench.publish({ ...DEFINITION, tools: ['Write', 'Deliver'] })
        const paths = ['plan.md']
        bench.main.answer(
          [{ tool: 'Write', input: { path: 'plan.md', content: '# Plan' }, id: 'call_1' }],
          [{ tool: 'Deliver', input: { paths, title: 'The plan' }, id: 'call_2' }],
          GOOD,
        )
        const client = await connect(mode)
        const {
          content,
          structuredContent,
          _meta: meta,
        } = await client.callTool({ name, arguments: { text: 'hello' } })
        const [, link] = content as ResourceLink[]
        expect(structuredContent).to.deep.equal({ answer: 'yes' })
        expect(link).to.include({
          type: 'resource_link',
          name: 'plan.md',
          title: 'The plan',
          mimeType: 'text/markdown',
          size: 6,
        })
        const { contents } = await client.readResource({ uri: link?.uri ?? '' })
        expect(contents).to.deep.equal([{ uri: link?.uri, mimeType: 'text/markdown', text: '# Plan' }])
        const other = await client.readResource({ uri: 'agent-engine://files/file_0' }).catch((cause: unknown) => cause)
        expect(other).to.be.instanceOf(Error)
        const replay = await bench.call('GET', `/dispatches/${meta?.['agent-engine/trace_id']}/events?speed=100`)
        expect(replay.text).to.include(`"artifacts":[{"file_id":"${link?.uri.split('/').at(-1)}"`)
      })

      it('an output that is no object is structured, too', async () => {
        const name = await bench.publish({ ...DEFINITION, output_schema: { type: 'array', items: { type: 'number' } } })
        bench.main.otherwise(() => '[1, 2]')
        const client = await connect(mode)
        await client.listTools()
        const { structuredContent, content } = await client.callTool({ name, arguments: { text: 'hello' } })
        expect(structuredContent).to.deep.equal(mode === MODES[0] ? [1, 2] : { result: [1, 2] })
        expect((content as Content)[0]?.text).to.equal('[1,2]')
      })

      it('what is wrong with a run is a result that the model reads, and what is wrong with a request is an error', async () => {
        const name = await bench.publish(DEFINITION)
        const client = await connect(mode)
        const textOf = async (input: Record<string, unknown>) => {
          const { isError, content } = await client.callTool({ name, arguments: input })
          expect(isError).to.equal(true)
          return (content as Content)[0]?.text
        }
        expect(await textOf({})).to.match(/text/)
        bench.main.otherwise(() => ({ status: 401 }))
        expect(await textOf({ text: 'hello' })).to.match(/^provider_auth: /)
        bench.main.otherwise(() => '{"answer": 7}')
        expect(await textOf({ text: 'hello' })).to.match(/does not fit its schema\n\/answer: /)
        for (const unknown of [newName(), 'No Tool']) {
          const cause: unknown = await client.callTool({ name: unknown, arguments: {} }).catch((each: unknown) => each)
          expect(cause).to.include({ code: -32602 })
        }
      })

      it('a call with a progress token reports each turn', async () => {
        const agent = { name: 'lines', prompt: 'Count.', output_schema: textSchema('lines'), tools: [] }
        const name = await bench.publish({ ...DEFINITION, sub_agents: [agent] })
        bench.main.answer('{"lines":"two"}', GOOD)
        const seen: [number, string | undefined][] = []
        const onprogress = ({ progress, message }: { progress: number; message?: string | undefined }) =>
          void seen.push([progress, message])
        const client = await connect(mode)
        await client.callTool({ name, arguments: { text: 'hello' } }, { onprogress })
        expect(seen).to.deep.equal([
          [1, 'lines: turn 1'],
          [2, 'main: turn 1'],
        ])
      })

      it('a call that the client gives up cancels the run', async () => {
        const name = await bench.publish(DEFINITION)
        const gate = Promise.withResolvers<void>()
        bench.main.otherwise(() => [{ hold: gate.promise }, { text: GOOD }])
        const client = await connect(mode)
        const controller = new AbortController()
        const asked = bench.main.requests.length
        const call = client
          .callTool({ name, arguments: { text: 'hello' } }, { signal: controller.signal })
          .catch((cause: unknown) => cause)
        await until(() => bench.main.requests.length > asked, { what: 'the run to call its model' })
        controller.abort()
        expect(await call).to.be.instanceOf(Error)
        const isCancelled = async () => {
          const { body } = await bench.call('GET', `/dispatches?flow=${name}`)
          const [dispatch] = (body as { dispatches: { status: string; error: { code?: string } | null }[] }).dispatches
          return dispatch?.status === 'error' && dispatch.error
        }
        const error = await until(isCancelled, { what: 'the run to be cancelled' })
        gate.resolve()
        expect(JSON.stringify(error)).to.match(/cancel/)
      })
    })
  }

  it('a call whose connection breaks goes on in the protocol of 2025; the same call with its key gets the result', async () => {
    const name = await bench.publish(DEFINITION)
    const gate = Promise.withResolvers<void>()
    bench.main.otherwise(() => [{ hold: gate.promise }, { text: GOOD }])
    const headers = { 'idempotency-key': randomUUID() }
    const first = await connect(MODES[1], headers)
    const asked = bench.main.requests.length
    const lost = first.callTool({ name, arguments: { text: 'hello' } }).catch((cause: unknown) => cause)
    await until(() => bench.main.requests.length > asked, { what: 'the run to call its model' })
    await first.close()
    expect(await lost).to.be.instanceOf(Error)
    const again = (await connect(MODES[1], headers)).callTool({ name, arguments: { text: 'hello' } })
    gate.resolve()
    expect((await again).structuredContent).to.deep.equal({ answer: 'yes' })
    expect(bench.main.requests).to.have.length(asked + 1)
  })

  if (form === 'standalone')
    it('50 calls at a time get their own answers', async () => {
      const name = await bench.publish({ ...DEFINITION, output_schema: textSchema('said') })
      bench.main.otherwise(({ body }) => {
        const [, number] = /number (\d+)/.exec(JSON.stringify(body)) ?? []
        return JSON.stringify({ said: `number ${number}` })
      })
      const client = await connect(MODES[0])
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => client.callTool({ name, arguments: { text: `number ${i}` } })),
      )
      for (const [i, { structuredContent, content }] of answers.entries())
        expect(structuredContent, JSON.stringify(content)).to.deep.equal({ said: `number ${i}` })
    })

  it('a subscriber learns that the tools have changed', async () => {
    const client = await connect(MODES[0])
    let changes = 0
    client.setNotificationHandler('notifications/tools/list_changed', () => void changes++)
    const subscription = await client.listen({ toolsListChanged: true })
    await bench.publish(DEFINITION)
    await until(() => changes > 0, { what: 'the change' })
    await subscription.close()
  })

  describe('a2a', () => {
    const call = (flow: string, input: object) => ({
      tenant: '',
      message: {
        ...{ messageId: randomUUID(), contextId: '', taskId: '', role: Role.ROLE_USER, metadata: { flow } },
        parts: [
          { content: { $case: 'data' as const, value: input }, metadata: undefined, filename: '', mediaType: '' },
        ],
        ...{ extensions: [], referenceTaskIds: [] },
      },
      configuration: undefined,
      metadata: undefined,
    })
    const open = () => new ClientFactory().createFromUrl(`${bench.product.url}/a2a`)

    it('a flow is a skill of the agent card, and its run a task whose artifact is the output', async () => {
      const name = await bench.publish(DEFINITION)
      const client = await open()
      expect((await client.getAgentCard()).skills.map(({ id }) => id)).to.include(name)
      const task = (await client.sendMessage(call(name, { text: 'hello' }))) as Task
      expect(task.status?.state).to.equal(TaskState.TASK_STATE_COMPLETED)
      expect(task.artifacts[0]?.parts[0]?.content).to.deep.equal({ $case: 'data', value: { answer: 'yes' } })
      expect(await client.getTask({ tenant: '', id: task.id })).to.deep.equal(task)
    })

    it('a run that fails, and an output that does not fit, are failed tasks; a refused input is an error', async () => {
      const name = await bench.publish(DEFINITION)
      const client = await open()
      for (const [answer, wanted] of [
        [{ status: 401 }, /provider_auth/],
        ['{"answer": 7}', /does not fit its schema/],
      ] as const) {
        bench.main.otherwise(() => answer)
        const task = (await client.sendMessage(call(name, { text: 'hello' }))) as Task
        expect(task.status?.state).to.equal(TaskState.TASK_STATE_FAILED)
        expect(JSON.stringify(task.status?.message?.parts)).to.match(wanted)
      }
      const refused: unknown = await client.sendMessage(call(name, {})).catch((cause: unknown) => cause)
      expect(refused).to.be.instanceOf(Error).and.have.property('message').that.includes('text')
    })

    it('the task of a flow that works is streamed, seen and cancelled', async () => {
      const name = await bench.publish(DEFINITION)
      const gate = Promise.withResolvers<void>()
      bench.main.otherwise(() => [{ hold: gate.promise }, { text: GOOD }])
      const client = await open()
      const states: unknown[] = []
      for await (const { payload } of client.sendMessageStream(call(name, { text: 'hello' }))) {
        if (payload?.$case === 'task') states.push(payload.value.status?.state)
        if (payload?.$case !== 'statusUpdate') continue
        states.push(payload.value.status?.state)
        if (states.length > 2) continue
        const { taskId: id } = payload.value
        expect((await client.getTask({ tenant: '', id })).status?.state).to.equal(TaskState.TASK_STATE_WORKING)
        await client.cancelTask({ tenant: '', id, metadata: undefined })
      }
      gate.resolve()
      expect(states.slice(0, 2)).to.deep.equal([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING])
      expect(states.at(-1)).to.equal(TaskState.TASK_STATE_CANCELED)
    })
  })

  it('the engine itself is a client: a session calls the flow as a tool', async () => {
    const name = await bench.publish(DEFINITION)
    await using folder = await makeTempFolder()
    const file = join(folder.path, 'mcp.json')
    await writeFile(file, JSON.stringify({ mcpServers: { flows: { type: 'http', url: url().href } } }))
    const caller = await startStandalone({ MCP_CONFIG: file, TOOL_PERMISSIONS: '{"mcp__*":"allow"}' })
    try {
      const tool = `mcp__flows__${name}`
      caller.model.answer([{ tool, input: { text: 'hello' } }], 'done')
      const frames = await (await caller.run({ prompt: 'call it' })).all()
      const result = frames.find(({ event }) => event === 'tool_result')
      expect(result?.data).to.deep.include({ tool_name: tool, output: '{"answer":"yes"}', is_error: false })
    } finally {
      await caller.close()
    }
  })
})
