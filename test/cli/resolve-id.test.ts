import { expect } from 'chai'
import { CliError } from '../../services/cli/exit-codes.ts'
import { type Kind, resolveId } from '../../services/cli/resolve-id.ts'
import { AgentEngine } from '../../shared/client/client.ts'

const hex = (start: string) => start.padEnd(32, '0')
const RUN = `run_${hex('6b03')}`
const LATER = `run_${'6c'.padEnd(28, '0')}beef`
const RUNS = [RUN, RUN, LATER].map((run_id) => ({ run_id }))
const ANSWERS: Record<string, object> = {
  '/runs': { runs: RUNS, next_cursor: null },
  '/plans': { plans: [{ id: `plan_${hex('6b')}` }], next_cursor: null },
  '/batches': { batches: [{ batch_id: `batch_${hex('6b03')}` }], next_cursor: null },
  '/sessions': { sessions: [{ session_id: 'support' }, { session_id: 'support-7' }], next_cursor: null },
}
/** The lists of one tenant, and how often they were read. */
let reads = 0
const engine = new AgentEngine({
  url: 'http://engine',
  fetch: async (input) => {
    reads++
    return Response.json(ANSWERS[new URL(String(input)).pathname] ?? {})
  },
})
const find = async (text: string, kinds: Kind[] = ['run', 'plan', 'session']) =>
  (await resolveId(engine, text, kinds)).id
const codeOf = async (text: string, kinds?: Kind[]) => {
  const cause = await find(text, kinds).catch((error: unknown) => error)
  return cause instanceof CliError ? cause.code : cause
}

describe('services/cli/resolve-id', () => {
  it('takes a whole id as it is, without asking the server', async () => {
    reads = 0
    expect(await find(`run_${hex('ab')}`)).to.equal(`run_${hex('ab')}`)
    expect(reads).to.equal(0)
  })

  it('takes the beginning of an id, with its prefix or without, and the short form that is shown', async () => {
    expect(await find('run_6b')).to.equal(RUN)
    expect(await find('6b03')).to.equal(RUN)
    expect(await find('run_6b…0000')).to.equal(RUN)
    expect(await find('plan_6')).to.equal(`plan_${hex('6b')}`)
    expect(await find('support-')).to.equal('support-7')
    expect(await find('batch_6', ['run', 'batch'])).to.equal(`batch_${hex('6b03')}`)
    expect(await find('6b03', ['run', 'batch']), 'a server may have no batches').to.equal(RUN)
  })

  it('takes the end of an id, where nothing begins so', async () => {
    expect(await find('beef')).to.equal(LATER)
    expect(await find('run_beef')).to.equal(LATER)
    expect(await find('…beef')).to.equal(LATER)
    expect(await find('run_…beef')).to.equal(LATER)
  })

  it('an id that is whole counts, though others begin with it', async () => {
    expect(await find('support')).to.equal('support')
  })

  it('refuses what names nothing (4), several things (2), or something of another kind (2)', async () => {
    expect(await codeOf('run_9')).to.equal(4)
    expect(await codeOf('run_6')).to.equal(2)
    expect(await codeOf('6b')).to.equal(2)
    expect(await codeOf('supp')).to.equal(2)
    expect(await codeOf(RUN, ['plan'])).to.equal(2)
    expect(await codeOf(' ')).to.equal(2)
  })
})
