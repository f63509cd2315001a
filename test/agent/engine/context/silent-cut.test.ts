import { expect } from 'chai'
import { isCutSilently } from '../../../../shared/agent/engine/context/size.ts'
import { Conversation } from '../../../../shared/agent/engine/conversation.ts'
import { play, says200, scripted, USAGE } from './setup.ts'

const counted = (input: number) => says200('ok', { ...USAGE, input })

/** Plays one message after the other on one conversation, each with a prompt of 4,000 characters, and tells the warnings of each. */
async function messages(...counts: number[]) {
  const conversation = new Conversation()
  const provider = scripted(...counts.map(counted))
  const codes: string[][] = []
  for (const _ of counts) {
    const { warnings } = await play(provider, { conversation, prompt: 'p'.repeat(4_000) })
    codes.push(warnings.map(({ code }) => code))
  }
  return { codes, provider, conversation }
}

describe('a server that cuts a conversation without a word', () => {
  it('D5.6: is found by a count that stands still or falls while the request grows, and the next request is shortened to it', async () => {
    const { codes, conversation } = await messages(1_000, 2_000, 2_050, 1_000)
    expect(codes.slice(0, 3)).to.deep.equal([[], [], ['context_cut']])
    expect(codes[3]).to.include('context_compacted')
    expect(conversation.chars).to.be.below(12_000)
  })

  it('is not seen where the count grows with the request', async () => {
    const { codes } = await messages(1_000, 1_900, 2_700)
    expect(codes.flat()).to.deep.equal([])
  })

  it('is not seen between two models, nor behind a compaction, nor where the request grew little', () => {
    const measure = { tokens: 1_000, chars: 4_000, fixedChars: 0, model: 'm', compactions: 0 }
    const grown = { ...measure, chars: 8_000 }
    expect(isCutSilently(measure, grown)).to.equal(true)
    expect(isCutSilently(undefined, grown)).to.equal(false)
    expect(isCutSilently(measure, { ...grown, model: 'other' })).to.equal(false)
    expect(isCutSilently(measure, { ...grown, compactions: 1 })).to.equal(false)
    expect(isCutSilently(measure, { ...grown, chars: 4_700 })).to.equal(false)
    expect(isCutSilently({ ...measure, tokens: 900 }, { ...grown, tokens: 900 })).to.equal(false)
  })
})
