import { expect } from 'chai'
import { shortLine, titleOf } from '../../shared/reading/title.ts'

describe('the title of a prompt', () => {
  it('D20.3, D23.2: is its first sentence in one line', () => {
    const titles: readonly (readonly [prompt: string, title: string])[] = [
      ['Write the notes of 1.2, and check the links. Then mail them.', 'Write the notes of 1.2, and check the links.'],
      ['  say\r\n\thello  to all ', 'say hello to all'],
      ['Hi! Which files are here? Answer shortly.', 'Hi! Which files are here?'],
      ['Find e.g. the oldest order. It is late.', 'Find e.g. the oldest order.'],
      ['Translate what follows:\n\nGuten Tag', 'Translate what follows:'],
      ['He said “stop the import now.” Why?', 'He said “stop the import now.”'],
      ['请写一份关于上周订单的报告。然后发给我。', '请写一份关于上周订单的报告。'],
      [`${'\n'.repeat(5_000)}hello`, 'hello'],
      [' \n ', ''],
    ]
    for (const [prompt, title] of titles) expect(titleOf(prompt, 80)).to.equal(title)
  })

  it('a long one is cut between words and says so, and half of no character is left', () => {
    expect(titleOf(`find the ${'long '.repeat(30)}way`, 80)).to.equal(`find the${' long'.repeat(14)}…`)
    expect(titleOf('x'.repeat(80), 80)).to.equal('x'.repeat(80))
    expect(titleOf('x'.repeat(81), 80)).to.equal(`${'x'.repeat(79)}…`)
    for (let spaces = 310; spaces < 318; spaces++) {
      const title = titleOf(`a${' '.repeat(spaces)}${'😀'.repeat(200)}`, 80)
      expect(title.isWellFormed(), `${spaces} spaces`).to.equal(true)
    }
  })

  it('a short line has all sentences that have room', () =>
    expect(shortLine('Import the customers.\nCheck them. And more', 36)).to.equal('Import the customers. Check them.…'))
})
