import { expect } from 'chai'
import { TextFlow } from '../../../services/cli/text/text-flow.ts'
import { TerminalScreen } from '../../support/terminal-screen.ts'

function wrapped(pieces: readonly string[], columns: number): string {
  const flow = new TextFlow(() => columns)
  const screen = new TerminalScreen(80)
  for (const text of [...pieces.map((piece) => flow.write(piece)), flow.end()])
    screen.write(text.replaceAll('\n', '\r\n'))
  return screen.text
}

describe('services/cli/text/text-flow', () => {
  const text = 'The quick brown fox jumps.\n\n    indented code\n- 日本語 text'

  it('wraps between words, and keeps the lines and indents of the text', () => {
    expect(wrapped([text], 16)).to.equal(
      '  The quick\n  brown fox\n  jumps.\n\n      indented\n  code\n  - 日本語 text\n',
    )
  })

  it('is the same in whichever pieces the text comes', () => {
    expect(wrapped(Array.from(text), 16)).to.equal(wrapped([text], 16))
  })

  it('shows the beginning of a word at once', () => {
    expect(new TextFlow(() => 80).write('wor')).to.equal('  wor')
  })

  it('does not cut a word that is longer than a line', () => {
    expect(wrapped(['see https://example.com/long'], 12)).to.equal('  see\n  https://example.com/long\n')
  })

  it('writes nothing for nothing', () => {
    expect(wrapped([''], 80)).to.equal('')
  })
})
