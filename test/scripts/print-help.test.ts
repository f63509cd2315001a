import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { FIELDS } from '../../shared/platform/config/fields.ts'
import { targetFields } from '../../shared/platform/config/target-fields.ts'
import { makeProject, OURS } from './project.ts'

const COPIED = ['shared', 'scripts/print-help.ts', 'scripts/local-cluster', 'scripts/local-services']

const fields = [FIELDS, targetFields('MODEL'), targetFields('FALLBACK_MODEL')].flatMap((table) => Object.values(table))

/** Runs a script in a project without node_modules. */
async function run(script: string, args: string[]) {
  await using project = await makeProject()
  for (const path of COPIED) await cp(join(OURS, path), join(project.root, path), { recursive: true })
  const ended = await project.start(`scripts/${script}`, args).ended
  return { ...ended, npmCalls: await project.npmCalls() }
}

/** The text beside the name of a setting, unwrapped. */
function textOf(help: string, name: string): string {
  const [, first = '', rest = ''] = new RegExp(`^${name} +(\\S.*)\\n((?: {20,}\\S.*\\n)*)`, 'm').exec(help) ?? []
  return `${first} ${rest}`.replaceAll(/\s+/g, ' ').trim()
}

describe('the help of scripts/start and scripts/cluster', () => {
  for (const [script, args] of [
    ['start', ['--help']],
    ['start', ['-h']],
    ['cluster', ['--workers', '1', '--help']],
  ] as const) {
    it(`D1.3c: scripts/${script} ${args.join(' ')} prints every setting with its meaning, and installs and starts nothing`, async () => {
      const { code, stdout, stderr, npmCalls } = await run(script, [...args])
      expect({ code, stderr, npmCalls }).to.deep.equal({ code: 0, stderr: '', npmCalls: [] })
      expect(stdout).to.match(new RegExp(`^usage: scripts/${script} `))
      for (const { name, meaning } of fields) {
        expect(textOf(stdout, name).slice(0, meaning.length), name).to.equal(meaning)
      }
      for (const line of stdout.split('\n')) expect(line).to.have.length.at.most(100)
    })
  }

  it('the ten settings that matter first come first, and each setting stands once, below the title of its group', async () => {
    const { stdout } = await run('start', ['--help'])
    const [, ...groups] = stdout.split(/^(?=[A-Z][a-z][^\n]*\n\n[A-Z_]+ )/m)
    const named = groups.map((group) => [...group.matchAll(/^([A-Z][A-Z0-9_]+) /gm)].map(([, name]) => name))
    expect(groups[0]).to.match(/^The first to know\n/)
    expect(named[0]).to.have.length(10).and.include.members(['MODEL', 'PORT', 'DATA_DIR', 'OIDC_ISSUER'])
    expect(named.flat().toSorted()).to.deep.equal(fields.map(({ name }) => name).toSorted())
  })

  it('D1.3c: a default is printed once, or for both forms where they differ', async () => {
    const { stdout } = await run('start', ['--help'])
    for (const [name, end] of [
      ['PORT', '[8080]'],
      ['HOST', '[127.0.0.1; in the cluster form 0.0.0.0]'],
      ['CORS_ORIGINS', '[empty]'],
      ['OPS_TOKEN', '[unset]'],
    ] as const) {
      expect(textOf(stdout, name).endsWith(` ${end}`), name).to.equal(true)
    }
  })

  it('every meaning is one or more sentences', () => {
    for (const { name, meaning } of fields) expect(meaning, name).to.match(/^[A-Z].{8,}\.$/)
  })
})
