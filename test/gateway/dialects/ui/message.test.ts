import * as seven from 'ai'
import * as six from 'ai-6'
import { expect } from 'chai'
import { UiMessageProjection } from '../../../../services/gateway/dialects/ui/message.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import { errorEvent } from '../../../../shared/kernel/events.ts'
import * as of from '../recorded.ts'

type Part = Parameters<typeof of.respond>[2]

function messageOf(events: AgentEvent[], part?: Part) {
  const projection = new UiMessageProjection(of.RUN, 'chat-1')
  const { chunks } = of.respond(projection, events, part)
  return { message: projection.message, chunks }
}

/** The message that the package's own reader makes of the same chunks. */
async function readByPackage(chunks: readonly object[]) {
  const start = { type: 'start', messageId: of.RUN, messageMetadata: { runId: of.RUN, sessionId: 'chat-1' } }
  const stream = ReadableStream.from([start, ...chunks]) as ReadableStream<seven.UIMessageChunk>
  let message: seven.UIMessage | undefined
  for await (const each of seven.readUIMessageStream({ stream, onError: () => {} })) message = each
  return message
}

const shape = (parts: readonly object[] = []) =>
  parts.map((part) =>
    ['type', 'text', 'state', 'toolCallId', 'toolName', 'output', 'errorText', 'input'].map(
      (name) => (part as Record<string, unknown>)[name],
    ),
  )

describe('the message of a run, for a page that is opened anew', () => {
  const RUNS: Record<string, [events: AgentEvent[], part?: Part]> = {
    'that waits': [of.WITH_SUB_AGENT],
    'that was allowed and denied': [of.WITH_SUB_AGENT, { passed: 99 }],
    'whose tools have asked questions': [of.WITH_QUESTIONS, { passed: 99 }],
    'that went on elsewhere': [of.RECOVERED],
    'whose turn came without deltas': [of.REST],
    'whose calls are void': [of.CUT_ANEW],
    'whose calls are made again': [of.CUT_AGAIN],
    'that has failed': [[of.turn(1), ...of.said('half'), errorEvent('provider_rejected', 'no')]],
  }
  for (const [what, [events, part]] of Object.entries(RUNS))
    it(`D31.5b: a run ${what} has the parts that a page has read from its stream, and both versions of the package take them`, async () => {
      const { message, chunks } = messageOf(events, part)
      const read = await readByPackage(chunks)
      expect(shape(message.parts)).to.deep.equal(shape(read?.parts))
      expect(message.metadata).to.deep.include(read?.metadata)
      for (const { safeValidateUIMessages } of [seven, six as unknown as typeof seven])
        expect(await safeValidateUIMessages({ messages: [message] })).to.deep.include({ success: true })
    })

  it('D31.5b: a failed run says so in the metadata, in words', () => {
    const { message } = messageOf([of.turn(1), errorEvent('provider_rejected', 'no')])
    expect(message.metadata).to.include({ errorCode: 'provider_rejected' })
    expect(message.metadata['error']).to.include('no')
  })
})
