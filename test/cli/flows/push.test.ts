import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { CliError, EXIT } from '../../../services/cli/exit-codes.ts'
import { type PushOptions, push } from '../../../services/cli/flows/push.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { cliOf } from '../outputs.ts'

describe('services/cli/flows/push', () => {
  const dir = useTempFolder()
  before(async () => {
    await writeFile(join(dir.path, 'new.yaml'), 'name: new\nsystem_prompt_template: one')
    await writeFile(join(dir.path, 'same.yaml'), 'name: same\nsystem_prompt_template: two')
    await writeFile(join(dir.path, 'other.yaml'), 'name: other\nsystem_prompt_template: three')
  })

  async function pushed(options: PushOptions, problems: object[] = []) {
    const calls: unknown[] = []
    const stored: Record<string, object> = { same: { system_prompt_template: 'two' }, other: {}, gone: {} }
    const heads = [...Object.keys(stored), 'house'].map((name) => ({ name, built_in: name === 'house' }))
    const note =
      (method: string) =>
      async (path: string, { path: { name }, query }: { path: { name: string }; query?: object }) => {
        if (path.endsWith('/check')) return { problems }
        calls.push([method, path.replace('{name}', name), ...(query ? [query] : [])])
        return {}
      }
    const { cli, written } = cliOf({
      flows: { list: () => ({ all: async () => heads }), get: async (name: string) => ({ definition: stored[name] }) },
      raw: { put: note('PUT'), post: note('POST'), delete: note('DELETE') },
    })
    const failure = await push(dir.path, options, cli).then(
      () => undefined,
      (cause: unknown) => cause as CliError,
    )
    return { calls, failure, ...written }
  }

  it('stores what is new or different, after showing it, and leaves all else', async () => {
    const { calls, err, out } = await pushed({ yes: true })
    expect(calls).to.deep.equal([
      ['PUT', '/flows/new'],
      ['PUT', '/flows/other'],
    ])
    expect(err).to.match(/^ {2}\+ new\n {2}~ other\n.*system_prompt_template/)
    expect(out).to.equal('new created\nother changed\n')
  })

  it('--prune deletes what the folder does not have, and no built-in flow', async () => {
    const { calls, err, out } = await pushed({ yes: true, prune: true })
    expect(calls.at(-1)).to.deep.equal(['DELETE', '/flows/gone'])
    expect(calls).to.have.length(3)
    expect([err.includes('  - gone'), out.endsWith('gone deleted\n')]).to.deep.equal([true, true])
  })

  it('--publish publishes each, and --keep-published leaves what is served', async () => {
    expect((await pushed({ yes: true, publish: true })).calls.slice(0, 2)).to.deep.equal([
      ['PUT', '/flows/new'],
      ['POST', '/flows/new/publish'],
    ])
    expect((await pushed({ yes: true, keepPublished: true })).calls[0]).to.deep.equal([
      ...['PUT', '/flows/new', { keep_published: true }],
    ])
  })

  it('changes nothing without a yes, or while one of the definitions is wrong', async () => {
    const asked = await pushed({})
    expect([asked.calls, asked.failure?.code]).to.deep.equal([[], EXIT.usage])
    const wrong = await pushed({ yes: true }, [{ param: '/tools', message: 'no such tool' }])
    expect([wrong.calls, wrong.failure?.message]).to.deep.equal([[], '3 problems in the definitions'])
    expect(wrong.failure?.hint).to.include('new.yaml /tools: no such tool')
  })
})
