// Tests what each dialect says of a run that was told something, and that has delivered a file.
import { EventSchemas } from '@ag-ui/core/schemas'
import { readUIMessageStream, uiMessageChunkSchema } from 'ai'
import { expect } from 'chai'
import { TaskProjection } from '../../../../services/gateway/dialects/a2a/task-projection.ts'
import { AgUiProjection } from '../../../../services/gateway/dialects/ag-ui/ag-ui-projection.ts'
import { ResponsesProjection } from '../../../../services/gateway/dialects/openai/responses-projection.ts'
import { UiProjection } from '../../../../services/gateway/dialects/ui/ui-projection.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import * as of from '../recorded.ts'

const FILE = { file_id: 'file_1', name: 'plan.md', media_type: 'text/markdown', bytes: 6, title: 'The plan' }
const RUN: AgentEvent[] = [
  ...[
    of.turn(1),
    of.call('t1'),
    { type: 'artifact', ...FILE, tool_use_id: 't1' } as const,
    of.result('t1'),
    of.turnEnd(1),
  ],
  ...[of.turn(2), { type: 'steered', id: 'steer_1', text: 'Stop', by: 'ann' } as const],
  ...[...of.said('Done.'), of.turnEnd(2), of.done],
]

describe('what was told and delivered', () => {
  it('D49.7, D50.4: `ui` has a file with its address, and parts of our own that the package takes', async () => {
    const { chunks } = of.respond(new UiProjection(of.RUN, 'chat-1', '/v1'), RUN)
    const stream = new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk)
        controller.close()
      },
    })
    for (const chunk of chunks)
      expect((await uiMessageChunkSchema().validate?.(chunk))?.success, chunk.type).to.equal(true)
    let parts: object[] = []
    for await (const message of readUIMessageStream({ stream })) parts = message.parts
    expect(parts).to.deep.include({ type: 'file', url: '/v1/files/file_1/content', mediaType: 'text/markdown' })
    const data = {
      fileId: 'file_1',
      name: 'plan.md',
      mediaType: 'text/markdown',
      bytes: 6,
      title: 'The plan',
      toolCallId: 't1',
    }
    expect(parts).to.deep.include({ type: 'data-artifact', id: 'file_1', data })
    expect(parts).to.deep.include({ type: 'data-steered', id: 'steer_1', data: { text: 'Stop', by: 'ann' } })
  })

  it('D49.7, D50.4: AG-UI has its CUSTOM events, which its schemas accept', () => {
    const { chunks } = of.respond(
      new AgUiProjection({ threadId: 't', runId: 'r', engineRunId: of.RUN, isCurrent: true }),
      RUN,
    )
    for (const chunk of chunks) EventSchemas.parse(chunk)
    const custom = chunks.filter(({ type }) => type === 'CUSTOM').map(({ name, value }) => [name, value])
    expect(custom.slice(0, 2)).to.deep.equal([
      ['artifact', { ...FILE, tool_use_id: 't1' }],
      ['steered', { id: 'steer_1', text: 'Stop', by: 'ann' }],
    ])
  })

  it('D49.7, D50.4: A2A has an artifact with the address of the file, and a message of the status', () => {
    const { chunks } = of.respond(new TaskProjection({ runId: of.RUN, contextId: 'c' }), RUN)
    const text = JSON.stringify(chunks)
    expect(text).to.include(
      '"artifact":{"artifactId":"file_1","name":"The plan","parts":[{"url":"files/file_1/content","filename":"plan.md","mediaType":"text/markdown"}',
    )
    expect(text).to.include('"text":"Stop"')
  })

  it('D50.4: a response names the file at the text that follows', () => {
    const projection = new ResponsesProjection({
      id: 'resp_1',
      runId: of.RUN,
      created: 1,
      part: 1,
      echo: { model: 'm' },
    })
    const last = of.respond(projection, RUN).chunks.at(-1) as unknown as {
      response: { output: { content?: object[] }[] }
    }
    const annotations = [{ type: 'file_path', file_id: 'file_1', filename: 'plan.md', index: 0 }]
    expect(last.response.output.at(-1)?.content).to.deep.equal([
      { type: 'output_text', text: 'Done.', annotations, logprobs: [] },
    ])
  })
})
