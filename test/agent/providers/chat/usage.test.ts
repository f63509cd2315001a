import { expect } from 'chai'
import { toUsage } from '../../../../shared/agent/providers/chat/usage.ts'
import { DONE, end, events, say } from '../../../support/model-server/chat-servers.ts'
import { type Answer, useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, DIALECTS, partsOf, request } from '../ai-sdk/setup.ts'

describe('the token counts of a streamed chat completion', () => {
  const server = useModelServer({ perTest: true })

  const usageOf = async (answer: Answer) => {
    server.answer(answer)
    return partsOf(await ask(await connect('openai-compatible', server)), 'finish')[0]?.usage
  }

  it('may stand in the choice, as Moonshot sends them', async () => {
    const usage = { prompt_tokens: 19, completion_tokens: 13, total_tokens: 32 }
    expect(await usageOf(events(say('a'), end({ usage }), DONE))).to.deep.include({ input: 19, output: 13 })
  })

  it('count reasoning as output when it is outside `completion_tokens`, as xAI sends it', async () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 4,
      total_tokens: 114,
      completion_tokens_details: { reasoning_tokens: 100 },
    }
    expect(await usageOf(events(say('a'), end({}, { usage }), DONE))).to.deep.include({ input: 10, output: 104 })
    const inside = { ...usage, completion_tokens: 104 }
    expect(await usageOf(events(say('a'), end({}, { usage: inside }), DONE))).to.deep.include({ output: 104 })
  })

  it('are taken one by one where the server leaves one out', () => {
    const none = { cacheRead: 0, cacheWrite: 0 }
    const reasoned = { prompt_tokens: 10, total_tokens: 12, completion_tokens_details: { reasoning_tokens: 2 } }
    expect(toUsage(reasoned)).to.deep.equal({ ...none, input: 10, output: 2 })
    expect(toUsage({ prompt_tokens: 10, completion_tokens: null })).to.deep.equal({ ...none, input: 10 })
    expect(toUsage({ completion_tokens: 2 })).to.deep.equal({ ...none, output: 2 })
    const cached = { cached_tokens: 3, cache_write_tokens: 4 }
    const counted = { prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: cached }
    expect(toUsage(counted)).to.deep.equal({ input: 10, output: 2, cacheRead: 3, cacheWrite: 4 })
  })

  it('D5.8: are missing when the server sends none, or only zeros', async () => {
    expect(await usageOf(events(say('a'), end(), DONE))).to.equal(undefined)
    const zeros = { prompt_tokens: 0, completion_tokens: 0 }
    expect(await usageOf(events(say('a'), end({}, { usage: zeros }), DONE))).to.equal(undefined)
  })

  for (const wrong of [-1e9, -1, 1.5, 1e308, 2 ** 53, '12', true, {}])
    it(`D5.8: are as good as missing when one of them is ${JSON.stringify(wrong)}, so that it cannot lower a budget`, async () => {
      for (const field of ['prompt_tokens', 'completion_tokens']) {
        const usage = { prompt_tokens: 10, completion_tokens: 4, [field]: wrong }
        expect(await usageOf(events(say('a'), end({}, { usage }), DONE)), field).to.equal(undefined)
      }
      const usage = { prompt_tokens: 10, completion_tokens: 4, prompt_tokens_details: { cached_tokens: wrong } }
      const counted = await usageOf(events(say('a'), end({}, { usage }), DONE))
      expect(counted).to.deep.equal({ input: 10, output: 4, cacheRead: 0, cacheWrite: 0 })
    })
})

describe('D4.11: a stop sequence', () => {
  const server = useModelServer({ perTest: true })

  const STOPS = { stopSequences: ['END', ' ', 'FIN', 'c', 'd', 'e'] }

  for (const dialect of DIALECTS) {
    it(`is sent over ${dialect} only if the answer can tell that it was found`, async () => {
      await ask(await connect(dialect, server), request(STOPS))
      const sent = JSON.stringify(server.requests[0]?.body)
      if (dialect === 'anthropic') expect(sent).to.include('["END","FIN","c","d","e"]')
      else expect(sent).not.to.include('END')
    })
  }

  for (const field of ['stop_reason', 'matched_stop']) {
    it(`is sent to a server that has named it in \`${field}\`, and its name ends the answer with stop_sequence`, async () => {
      const provider = await connect('openai-compatible', server)
      server.answer(events(say('a', { [field]: null }), end({ [field]: 'FIN' }), DONE), 'ok')
      const [finish] = partsOf(await ask(provider, request(STOPS)), 'finish')
      expect(finish?.reason).to.equal('stop_sequence')
      await ask(provider, request(STOPS))
      expect(server.requests[1]?.body['stop']).to.deep.equal(['END', 'FIN', 'c', 'd'])
      await ask(provider, request({ ...STOPS, model: 'x-ai/grok-4' }))
      expect(server.requests[2]?.body).not.to.have.property('stop')
    })

    it(`is not found when \`${field}\` names something else`, async () => {
      server.answer(events(say('a'), end({ [field]: 'end_turn' }), DONE))
      const [finish] = partsOf(await ask(await connect('openai-compatible', server), request(STOPS)), 'finish')
      expect(finish?.reason).to.equal('end_turn')
    })
  }
})
