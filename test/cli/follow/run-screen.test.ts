import { expect } from 'chai'
import { RunScreen } from '../../../services/cli/follow/run-screen.ts'
import type { Output } from '../../../services/cli/output.ts'
import type { RunEvent } from '../../../shared/client/client.ts'
import { TerminalScreen } from '../../support/terminal-screen.ts'
import { collect } from '../outputs.ts'

const event = (name: RunEvent['event'], data: object) => ({ event: name, data }) as unknown as RunEvent
const said = (...texts: string[]) => [
  ...texts.map((text) => event('text_delta', { text })),
  event('text', { text: texts.join('') }),
]
const TURN = event('turn_start', { turn_number: 1, model: 'm1' })
const called = (id: string) => event('tool_use', { id, tool_name: 'Write', input: { path: 'a.txt' } })
const result = (id: string, output: string, isError = false) =>
  event('tool_result', { id, tool_name: 'Write', output, is_error: isError })
const DONE = event('done', {
  ...{ total_input_tokens: 6, total_output_tokens: 4, total_tokens: 10, cost_usd: 0.01, turn_count: 1 },
  stop_reason: 'end_turn',
})

describe('services/cli/follow/run-screen', () => {
  function show(events: RunEvent[], { hasText = true, ...changes }: Partial<Output> & { hasText?: boolean } = {}) {
    const { output, written } = collect(changes)
    const screen = new RunScreen({ output, hasText })
    for (const [i, each] of events.entries()) screen.show({ ...each, id: i + 1 }, `run_${'0'.repeat(28)}beef`)
    return { screen, written }
  }

  it('the answer is on stdout, each text a paragraph, and ends its line; stderr has the model and what was used', () => {
    const { screen, written } = show([TURN, ...said('', 'one ', 'two'), ...said('', 'three'), DONE])
    screen.end()
    expect(written.out).to.equal('one two\n\nthree\n')
    expect(written.err).to.match(/^● m1 +run_0000….?beef\n✓ /)
  })

  it('a recorded run has whole texts only, which are written once', () => {
    expect(show([TURN, event('text', { text: 'one two' })]).written.out).to.equal('one two')
  })

  it('stdout is left alone where it is for something else', () => {
    expect(show([TURN, ...said('one')], { hasText: false }).written.out).to.equal('')
  })

  it('a call is one line when it has ended, with the reason when it failed, and without escape sequences', () => {
    const { written } = show([
      TURN,
      called('c1'),
      result('c1', 'written'),
      called('c2'),
      result('c2', 'no\u001b[2J disk', true),
    ])
    const [, good = '', bad = '', why = ''] = written.err.split('\n')
    expect(good).to.match(/✓ Write +a\.txt +7 B/)
    expect(bad).to.match(/✗ Write +a\.txt/)
    expect(why)
      .to.match(/^ {4}no.* disk$/)
      .and.not.include('\u001b')
  })

  it('a warning says its code', () => {
    expect(show([TURN, event('warning', { code: 'failover', message: 'other model' })]).written.err).to.include(
      '! other model (failover)',
    )
  })

  it('a run that fails has no line of success', () => {
    const { screen, written } = show([TURN, event('error', { error: 'no', code: 'provider_auth' })])
    screen.end()
    expect(written.err).not.to.include('✓')
  })

  it('on a terminal a call that goes on is drawn below, then what is asked, and both go away', () => {
    const terminal = new TerminalScreen(80)
    const err = (text: string) => terminal.write(text.replaceAll('\n', '\r\n'))
    const { screen } = show([TURN, called('c1')], { isLive: true, err })
    screen.setPrompt(() => 'allow? ')
    expect(terminal.lines.slice(1, 3).map((line) => line.trim().split(/\s+/)[0])).to.deep.equal(['▸', 'allow?'])
    screen.setPrompt(undefined)
    screen.show({ ...result('c1', 'written'), id: 9 })
    screen.end()
    expect(terminal.lines.map((line) => line.trim().split(/\s+/)[0]).filter(Boolean)).to.deep.equal(['●', '✓'])
  })
})
