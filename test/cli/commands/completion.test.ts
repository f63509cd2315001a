import { expect } from 'chai'
import { Command } from 'commander'
import { defineCompletion } from '../../../services/cli/commands/completion.ts'
import { cliOf } from '../outputs.ts'

describe('services/cli/commands/completion', () => {
  /** What `ae completion ids` prints for the words, at a client with flows of these names. */
  async function idsFor(words: string[], names: string[]): Promise<string> {
    const list = (rows: object[]) => () => ({ all: async () => rows })
    const client = {
      flows: { list: list(names.map((name) => ({ name }))) },
      runs: { list: list([{ run_id: 'run_1' }]) },
      plans: { list: list([{ id: 'plan_1' }]) },
    }
    const { cli, written } = cliOf(client)
    const program = new Command('ae')
    defineCompletion(program.command('completion'), cli)
    await program.parseAsync(['completion', 'ids', '--', ...words], { from: 'user' })
    return written.out
  }

  it('prints the ids that a command takes, also behind options and other ids, and none for others', async () => {
    expect(await idsFor(['cancel', '--quiet', 'run_0'], [])).to.equal('run_1\nplan_1\n')
    expect(await idsFor(['plans', 'watch'], [])).to.equal('plan_1\n')
    expect(await idsFor(['flows', 'publish'], ['invoice-total', 'b'])).to.equal('invoice-total\nb\n')
    for (const words of [['plans'], ['flows', 'push'], ['usage'], ['constructor'], []])
      expect(await idsFor(words, [])).to.equal('')
  })

  it('prints nothing that a shell would execute, split or take for an option', async () => {
    const hostile = ['$(touch x)', '`x`', 'a b', '-rf', 'a;b', "a'", 'a\nb', '*', '~', '\u001b[2J', '${IFS}', 'a$b']
    expect(await idsFor(['flows', 'run'], ['good.one', ...hostile])).to.equal('good.one\n')
  })
})
