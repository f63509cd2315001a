import { expect } from 'chai'
import { parseChunk } from '../../../../shared/agent/providers/chat/chunk.ts'
import { TextTemplate } from '../../../../shared/agent/providers/chat/template.ts'

const chunkOf = (text: string, { id = 'c1', seed = 7 } = {}) =>
  JSON.stringify({ id, choices: [{ delta: { content: text } }], seed })

/** A template that has learned from as many chunks as it wants to see before. */
function learned(text = 'a'): TextTemplate {
  const template = new TextTemplate()
  for (let i = 0; i < 9; i++) learn(template, chunkOf(text))
  return template
}

function learn(template: TextTemplate, data: string): void {
  template.learn(data, parseChunk(data) ?? expect.fail('no chunk'))
}

describe('the template of chunks that differ in their text only', () => {
  it('reads the text of a chunk with the same characters around it, whatever the text is', () => {
    const template = learned()
    for (const text of ['b', '', '"}]', '\u2028', 'a longer text\n'])
      expect(template.textOf(chunkOf(text))).to.equal(text)
  })

  it('has no text for a chunk that differs before its text, or behind it, alone', () => {
    const template = learned()
    expect(template.textOf(chunkOf('b', { id: 'c2' }))).to.equal(undefined)
    expect(template.textOf(chunkOf('b', { seed: 8 }))).to.equal(undefined)
  })

  it('has no text for a chunk that ends within what stands around the text, or has another value there', () => {
    const template = learned()
    const [head = '', tail = ''] = chunkOf('|').split('"|"')
    expect(template.textOf(head + tail)).to.equal(undefined)
    expect(template.textOf(`${head}7${tail}`)).to.equal(undefined)
    expect(template.textOf(`${head}"a","refusal":"b"${tail}`)).to.equal(undefined)
  })

  it('has no text before it has learned, not even for a text by itself', () => {
    const template = new TextTemplate()
    for (let i = 0; i < 8; i++) learn(template, chunkOf('a'))
    expect([template.textOf('"a"'), template.textOf(chunkOf('a'))]).to.deep.equal([undefined, undefined])
  })

  it('learns from no chunk with more than a text, and gives up after four that did not help', () => {
    const template = new TextTemplate()
    for (let i = 0; i < 8; i++) learn(template, chunkOf('a'))
    learn(template, JSON.stringify({ choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }] }))
    expect(template.textOf(chunkOf('a'))).to.equal(undefined)
    for (let i = 0; i < 4; i++) learn(template, chunkOf('a', { id: `other ${i}` }))
    learn(template, chunkOf('a'))
    expect(template.textOf(chunkOf('b'))).to.equal(undefined)
  })
})
