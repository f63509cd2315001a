import { randomUUID } from 'node:crypto'
import { type Message, type Part, Role, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk'
import { type Client, ClientFactory } from '@a2a-js/sdk/client'
import { expect } from 'chai'
import type { Form } from '../../../shared/platform/config/fields.ts'
import { until } from '../../support/until.ts'
import { type RunningProduct, replyNatively, agent as subAgent, tool, write } from './dialect-product.ts'

const LIST = tool('TodoWrite', { todos: [] })

/** The package `@a2a-js/sdk`, unmodified: it reads the agent card and the tasks. */
export function a2aTests(product: RunningProduct, form: Form): void {
  const open = () => new ClientFactory().createFromUrl(`${product().url}/a2a`)
  let client: Client
  before(async () => {
    client = await open()
  })

  const text = (value: string): Part => ({ content: { $case: 'text', value }, ...NO_PART })
  const data = (value: object): Part => ({ content: { $case: 'data', value }, ...NO_PART })
  const request = (parts: Part[], rest: Partial<Message> = {}, returnImmediately = false) => ({
    tenant: '',
    message: {
      ...{ messageId: randomUUID(), contextId: '', taskId: '', role: Role.ROLE_USER, parts },
      ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
      ...rest,
    },
    configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
    metadata: undefined,
  })
  const send = async (prompt: string, rest: Partial<Message> = {}) =>
    (await client.sendMessage(request([text(prompt)], rest))) as Task
  const answer = async ({ id, contextId }: Task, part: Part) =>
    (await client.sendMessage(request([part], { taskId: id, contextId }))) as Task
  const named = (id: string) => ({ tenant: '', id, metadata: undefined })
  const textOf = ({ artifacts }: Pick<Task, 'artifacts'>) =>
    artifacts.flatMap(({ parts }) => parts.map(({ content }) => String(content?.value))).join('|')
  const saidBy = ({ status }: Task) => JSON.stringify(status?.message?.parts ?? [])
  const askedBy = ({ status }: Task): { id: string; tool_name: string }[] =>
    (status?.message?.parts ?? []).flatMap(({ content }) =>
      content?.$case === 'data' ? (content.value as { permissions: [] }).permissions : [],
    )

  it('a message is answered with a task, and the next one of its context goes on with the conversation', async () => {
    const first = await send(`${LIST}\n/say done`)
    expect(first.status?.state).to.equal(TaskState.TASK_STATE_COMPLETED)
    expect(textOf(first)).to.include('done')
    expect(first.metadata?.['usage']).to.include.keys('total_tokens', 'cost_usd')
    const second = await send('/say again', { contextId: first.contextId })
    expect(textOf(second)).to.match(/again$/)
    const { body } = await product().call('GET', `/sessions/${first.contextId}`)
    expect(body).to.include({ message_count: 5 })
  })

  it('a stream begins with the task; its artifacts and its calls of tools follow', async () => {
    const events: StreamResponse[] = []
    const stream = client.sendMessageStream(request([text(`${LIST}\n/say all done`)]))
    for await (const event of stream) events.push(event)
    const payloads = events.map(({ payload }) => payload)
    const [first] = payloads
    const updates = payloads.flatMap((each) => (each?.$case === 'statusUpdate' ? [each.value.status] : []))
    expect(JSON.stringify(updates[0]?.message?.parts)).to.include('TodoWrite')
    expect(updates.at(-1)?.state).to.equal(TaskState.TASK_STATE_COMPLETED)
    const texts = new Map<string, string>()
    for (const each of payloads) {
      if (each?.$case !== 'artifactUpdate' || !each.value.artifact) continue
      const { artifactId, parts } = each.value.artifact
      const before = each.value.append ? (texts.get(artifactId) ?? '') : ''
      texts.set(artifactId, before + String(parts[0]?.content?.value))
    }
    const task = await client.getTask(named(first?.$case === 'task' ? first.value.id : ''))
    expect([...texts.values()].join('|')).to.equal(textOf(task))
    expect(textOf(task)).to.include('all done')
  })

  it('a task waits for an approval, and goes on when it is allowed, denied, or allowed with other arguments', async () => {
    const answers: [(id: string) => Part, RegExp][] = [
      [() => text('allow'), /Write answered/],
      [() => text('deny: not on a Friday'), /not on a Friday/],
      [(id) => data({ permissions: [{ id, allow: true }] }), /Write answered/],
      [
        (id) => data({ permissions: [{ id, allow: true, input: { path: 'b.txt', content: 'other' } }] }),
        /The user changed the input.*b\.txt/s,
      ],
    ]
    for (const [part, wanted] of answers) {
      const asked = await send(`${write('a.txt')}\n/say bye`)
      expect(asked.status?.state).to.equal(TaskState.TASK_STATE_INPUT_REQUIRED)
      expect(saidBy(asked)).to.include('Write 5 bytes to the file a.txt.')
      const [permission] = askedBy(asked)
      const seen = await client.getTask(named(asked.id))
      expect(seen.status).to.deep.equal(asked.status)
      const ended = await answer(asked, part(permission?.id ?? ''))
      expect(ended.status?.state).to.equal(TaskState.TASK_STATE_COMPLETED)
      expect(textOf(ended)).to.match(wanted)
    }
  })

  it("a sub-agent's approval and a second one are asked in turn", async () => {
    const first = await send(`${subAgent(write('a.txt'), '/say wrote it')}\n${write('b.txt')}\n/say bye`)
    const second = await answer(first, text('allow'))
    expect(second.status?.state).to.equal(TaskState.TASK_STATE_INPUT_REQUIRED)
    expect(askedBy(second)).to.have.length(1)
    expect(askedBy(second)[0]?.id).to.not.equal(askedBy(first)[0]?.id)
    const third = await answer(second, text('allow'))
    expect(textOf(third)).to.match(/bye/)
  })

  it('a stream that broke off goes on with the task as it is', async () => {
    const stream = client.sendMessageStream(request([text(`/say before\n${write('a.txt')}\n/say after`)]))
    let task: Task | undefined
    for await (const { payload } of stream) if (payload?.$case === 'task') task = payload.value
    const { id = '', contextId = '' } = task ?? {}
    const events: StreamResponse[] = []
    const following = (async () => {
      for await (const event of client.resubscribeTask({ tenant: '', id })) {
        events.push(event)
        if (events.length === 1) await replyNatively(product(), contextId, { allow: true })
      }
    })()
    await following
    const [first, last] = [events[0]?.payload, events.at(-1)?.payload]
    expect(first?.$case === 'task' && first.value.status?.state).to.equal(TaskState.TASK_STATE_INPUT_REQUIRED)
    expect(first?.$case === 'task' && textOf(first.value)).to.include('before')
    expect(last?.$case === 'statusUpdate' && last.value.status?.state).to.equal(TaskState.TASK_STATE_COMPLETED)
    expect(textOf(await client.getTask(named(id)))).to.include('after')
  })

  it('a task that is answered at once works on, and is cancelled', async () => {
    const task = (await client.sendMessage(request([text('/say before\n/sleep 60000')], {}, true))) as Task
    expect(task.status?.state).to.equal(TaskState.TASK_STATE_WORKING)
    const cancelled = await client.cancelTask(named(task.id))
    expect([cancelled.id, cancelled.status?.state]).to.deep.equal([task.id, TaskState.TASK_STATE_CANCELED])
    const again = await client.cancelTask(named(task.id)).catch((cause: unknown) => cause)
    expect(again).to.have.property('name', 'TaskNotCancelableError')
  })

  it('a message with the id of an earlier one of its context is not sent twice', async () => {
    const contextId = `context-${randomUUID()}`
    const message = { contextId, messageId: randomUUID() }
    const [first, second] = [await send('/say once', message), await send('/say once', message)]
    expect(second.id).to.equal(first.id)
  })

  it('a run that fails is a failed task, and refusals are errors of the protocol', async () => {
    const failed = await send('/fail provider_rejected')
    expect(failed.status?.state).to.equal(TaskState.TASK_STATE_FAILED)
    expect(saidBy(failed)).to.include('provider_rejected: ')
    const nameOf = (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (cause: Error) => cause.name,
      )
    expect(await nameOf(client.getTask(named('task_x')))).to.equal('TaskNotFoundError')
    expect(await nameOf(client.getTask(named(`task_${'0'.repeat(32)}_c`)))).to.equal('TaskNotFoundError')
    expect(await nameOf(answer(failed, text('allow')))).to.equal('UnsupportedOperationError')
  })

  it('a plan is a task: each step that is done is an artifact, and its progress is streamed', async () => {
    const steps = [
      { id: 'read', prompt: '/say I have read it' },
      { id: 'write', prompt: '/say I have written it', depends_on: ['read'] },
    ]
    const events: StreamResponse[] = []
    const message = { metadata: { plan: true }, contextId: `context-${randomUUID()}` }
    for await (const event of client.sendMessageStream(request([data({ steps })], message))) events.push(event)
    const [first, last] = [events[0]?.payload, events.at(-1)?.payload]
    expect(first?.$case === 'task' && first.value.status?.state).to.equal(TaskState.TASK_STATE_SUBMITTED)
    expect(last?.$case === 'statusUpdate' && last.value.status?.state).to.equal(TaskState.TASK_STATE_COMPLETED)
    const told = events.flatMap(({ payload }) =>
      payload?.$case === 'artifactUpdate' ? [payload.value.artifact?.name] : [],
    )
    expect(told).to.deep.equal(['read', 'write'])
    const task = await client.getTask(named(first?.$case === 'task' ? first.value.id : ''))
    expect(textOf(task)).to.match(/I have read it.*\|.*written/s)
    expect(JSON.stringify(task.history)).to.include('/say I have read it')
    expect([task.contextId, task.metadata?.['step_statuses']]).to.deep.equal([
      message.contextId,
      { read: 'done', write: 'done' },
    ])
  })

  it('the task of a plan is cancelled while a step works', async () => {
    const plan = { steps: [{ id: 'wait', prompt: '/sleep 60000' }] }
    const states: unknown[] = []
    for await (const { payload } of client.sendMessageStream(request([], { metadata: { plan } }))) {
      if (payload?.$case !== 'statusUpdate') continue
      states.push(payload.value.status?.state)
      const { taskId: id, status } = payload.value
      if (!JSON.stringify(status?.message ?? null).includes('running')) continue
      const cancelled = await client.cancelTask(named(id))
      expect(cancelled.status?.state).to.equal(TaskState.TASK_STATE_CANCELED)
    }
    expect(states.at(-1)).to.equal(TaskState.TASK_STATE_CANCELED)
  })

  it('tasks are listed, those of a context with their messages', async () => {
    const first = await send('/say first')
    const second = await send('/say second', { contextId: first.contextId })
    const list = { ...{ tenant: '', status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: '' }, historyLength: 10 }
    const wanted = {
      ...list,
      ...{ contextId: first.contextId, includeArtifacts: true, statusTimestampAfter: undefined },
    }
    const listed = await until(
      async () => {
        const found = await client.listTasks(wanted)
        const states = found.tasks.map(({ status }) => status?.state)
        return states.every((state) => state === TaskState.TASK_STATE_COMPLETED) && found
      },
      { what: 'both runs to be recorded' },
    )
    expect(listed.tasks.map(({ id }) => id)).to.deep.equal([second.id, first.id])
    expect(listed.tasks.map(textOf)).to.deep.equal([second, first].map(textOf))
    expect(listed.tasks.map(({ history }) => String(history[0]?.parts[0]?.content?.value))).to.deep.equal([
      ...['/say second', '/say first'],
    ])
    const page = await client.listTasks({ ...wanted, ...{ contextId: '', includeArtifacts: false, pageSize: 1 } })
    expect(page).to.include({ pageSize: 1 }).and.have.property('nextPageToken').that.is.not.empty
  })

  if (form === 'standalone')
    it('50 streams at a time get their own answers', async () => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, async (_, i) => {
          let said = ''
          for await (const { payload } of client.sendMessageStream(request([text(`/say number ${i} is here`)])))
            if (payload?.$case === 'artifactUpdate')
              said += payload.value.artifact?.parts.map(({ content }) => String(content?.value)).join('') ?? ''
          return said
        }),
      )
      for (const [i, said] of answers.entries()) expect(said).to.include(`number ${i} is here`)
    })
}

const NO_PART = { metadata: undefined, filename: '', mediaType: '' }
