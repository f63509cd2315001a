import { expect } from 'chai'
import { LiveRegion } from '../../../services/cli/text/live-region.ts'
import { TerminalScreen } from '../../support/terminal-screen.ts'

describe('services/cli/text/live-region', () => {
  let writes: string[]
  let screen: TerminalScreen
  let live: LiveRegion
  beforeEach(() => {
    writes = []
    screen = new TerminalScreen(80)
    live = new LiveRegion((text) => {
      writes.push(text)
      screen.write(text.replaceAll('\n', '\r\n'))
    })
  })

  it('draws its lines in place, and what stays above them', () => {
    live.update(['a 1', 'b 1'])
    live.update(['a 2', 'b 2'], 'first\n')
    live.update(['b 3'], 'a is done\n')
    live.update([], 'b is done\n')
    expect(screen.lines).to.deep.equal(['first', 'a is done', 'b is done', ''])
  })

  it('does not flicker: one write for a change, and none without a change', () => {
    live.update(['a'])
    live.update(['a'])
    live.update(['b'], 'x\n')
    expect(writes).to.have.length(2)
  })
})
