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

  const LONG = 'x'.repeat(2_048)
  const MORE: [what: string, chunk: object][] = [
    ['a finish reason', { choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }] }],
    ['thinking', { choices: [{ delta: { content: 'a', reasoning: 'hm' } }] }],
    ['a text of nothing', { choices: [{ delta: { content: '' } }] }],
    ['a content that is no text', { choices: [{ delta: { content: 7 } }] }],
    ['no text', { choices: [{ delta: null }] }],
    ['no choice', { choices: [] }],
    ['more than 2,048 characters', { choices: [{ delta: { content: 'a' } }], id: LONG }],
  ]
  for (const [what, chunk] of MORE)
    it(`learns nothing from a chunk with ${what}, which counts for none of the four attempts`, () => {
      const template = new TextTemplate()
      for (let i = 0; i < 8; i++) learn(template, chunkOf('a'))
      const data = JSON.stringify(chunk)
      for (let i = 0; i < 5; i++) learn(template, data)
      expect(template.textOf(data)).to.equal(undefined)
      learn(template, chunkOf('a'))
      expect(template.textOf(chunkOf('b'))).to.equal('b')
    })

  it('gives up after four attempts in a row that did not help, and begins to count anew with one that did', () => {
    const others = (template: TextTemplate, count: number) => {
      for (let i = 0; i < count; i++) learn(template, chunkOf('a', { id: `other ${i}` }))
    }
    const lost = learned()
    others(lost, 3)
    learn(lost, chunkOf('a'))
    expect(lost.textOf(chunkOf('b'))).to.equal(undefined)
    const helped = learned()
    others(helped, 2)
    helped.textOf(chunkOf('b', { id: 'other 1' }))
    others(helped, 3)
    learn(helped, chunkOf('a'))
    expect(helped.textOf(chunkOf('b'))).to.equal('b')
  })

  it('finds the text of the content among others that look like it', () => {
    const dataOf = (text: string) =>
      JSON.stringify({ note: '"content":"a"', other: { content: 'a' }, choices: [{ delta: { content: text } }] })
    const template = new TextTemplate()
    for (let i = 0; i < 9; i++) learn(template, dataOf('a'))
    expect(template.textOf(dataOf('b'))).to.equal('b')
  })
})
