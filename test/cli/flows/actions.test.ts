import { expect } from 'chai'
import { CliError, EXIT } from '../../../services/cli/exit-codes.ts'
import { check, diff, evaluate, publish, remove, rollback } from '../../../services/cli/flows/actions.ts'
import { cliOf } from '../outputs.ts'

const failureOf = (work: Promise<unknown>): Promise<CliError> =>
  work.then(
    () => expect.fail('it did not fail'),
    (cause: unknown) => (cause instanceof CliError ? cause : Promise.reject(cause)),
  )

describe('services/cli/flows/actions', () => {
  const flow = (served: number | null) => ({
    flows: { get: async () => ({ version: 3, served_version: served }) },
    raw: {
      get: async () => ({
        revisions: [1, 2, 3].map((version) => ({ version, definition: { system_prompt_template: `v${version}` } })),
      }),
    },
  })

  it('diff compares what is served with the newest, or the versions that are named', async () => {
    const served = cliOf(flow(1))
    await diff('triage', {}, served.cli)
    expect(served.written.out)
      .to.match(/^ {2}triage 1 to 3\n.*v1/s)
      .and.include('v3')
    const named = cliOf(flow(1))
    await diff('triage', { from: 2, to: 2 }, named.cli)
    expect(named.written).to.deep.equal({ out: '', err: 'versions 2 and 2 are the same\n' })
  })

  it('diff needs a version to compare with, and one that exists', async () => {
    expect((await failureOf(diff('triage', {}, cliOf(flow(null)).cli))).code).to.equal(EXIT.usage)
    expect((await failureOf(diff('triage', { from: 9 }, cliOf(flow(1)).cli))).code).to.equal(EXIT.notFound)
  })

  it('check prints problems and warnings apart from the prompts, and problems are 2', async () => {
    const checked = {
      problems: [{ param: '/tools', message: 'no such tool' }],
      warnings: [] as object[],
      prompt_preview: {},
    }
    const wrong = cliOf({ raw: { post: async () => checked } })
    await check('triage', {}, wrong.cli)
    expect([wrong.written.err, wrong.codes]).to.deep.equal(['/tools: no such tool\n', [EXIT.usage]])
    const agents = [{ agent: 'main', system: 'one', user: 'two' }]
    const good = cliOf({ raw: { post: async () => ({ ...checked, problems: [], prompt_preview: { agents } }) } })
    await check('triage', {}, good.cli)
    expect([good.written.out, good.codes]).to.deep.equal(['# main, system\none\n\n# main, user\ntwo\n', []])
  })

  it('publish asks for a pass rate only when one is given', async () => {
    const sent: unknown[] = []
    const post = async (_path: string, { query }: { query?: object }) => {
      sent.push(query)
      return { version: 4 }
    }
    const { cli, written } = cliOf({ raw: { post } })
    await publish('triage', {}, cli)
    await publish('triage', { requirePassRate: 0.9 }, cli)
    expect(sent).to.deep.equal([undefined, { require_pass_rate: 0.9 }])
    expect(written.out).to.equal('triage version 4 published\n'.repeat(2))
  })

  it('evaluate shows both versions side by side, and the runs that differ', async () => {
    const figures = { pass_rate: 0.5, cost_usd: 1, latency_ms_p50: 100 }
    const report = {
      ...{
        version: 3,
        published_version: 2,
        published_pass_rate: 1,
        published_cost_usd: 2,
        published_latency_ms_p50: 50,
      },
      ...figures,
      runs: [
        { trace_id: 'trace_1', error: null, differences: [] },
        { trace_id: 'trace_2', error: null, differences: [{ path: 'team', published: 'a', draft: 'b' }] },
        { trace_id: 'trace_3', error: { message: 'too slow' }, differences: [] },
      ],
    }
    const { cli, written } = cliOf({ raw: { post: async () => report } })
    await evaluate('triage', {}, cli)
    expect(written.out).to.match(/pass rate +100 % +50 %/)
    expect(written.out).to.include('trace_2').and.include('trace_3\n    too slow').and.not.include('trace_1')
  })

  it('rollback takes whole versions from 1 only', async () => {
    for (const version of ['0', '1.5', 'x', ''])
      expect((await failureOf(rollback({ name: 'triage', version }, cliOf({}).cli))).code, version).to.equal(EXIT.usage)
  })

  it('rm needs --yes in a pipe', async () => {
    const deleted: string[] = []
    const { cli } = cliOf({ raw: { delete: async (path: string) => deleted.push(path) } })
    expect((await failureOf(remove('triage', {}, cli))).code).to.equal(EXIT.usage)
    expect(deleted).to.deep.equal([])
    await remove('triage', { yes: true }, cli)
    expect(deleted).to.have.length(1)
  })
})
