import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { changelogEntry } from '../../scripts/release/changelog.ts'
import { statedVersions, versionProblems } from '../../scripts/release/versions.ts'
import { apiDocument } from '../support/api-document.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { makeProject, OURS } from './project.ts'

const run = promisify(execFile)
/** What is no source: it is made, installed or the history. */
const MADE = /(^|\/)(\.git|node_modules|built[^/]*)$|^(data|release)$/
const IDENTITY = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false']

const read = (file: string) => readFile(join(OURS, file), 'utf8')
const { version, license } = JSON.parse(await read('package.json')) as { version: string; license: string }

/** A repository in a folder. */
class Repository {
  readonly dir: string

  constructor(dir: string) {
    this.dir = dir
  }

  async git(...args: string[]): Promise<void> {
    await run('git', ['-C', this.dir, ...IDENTITY, ...args], { maxBuffer: 64 * 1024 * 1024 })
  }

  async commit(subject: string): Promise<void> {
    await this.git('commit', '--quiet', '--allow-empty', '--message', subject, '--message', 'Why.')
  }
}

describe('what a release states', () => {
  it('is one version, in every file that names it, and it is refused where one differs or is missing', () => {
    const stated = statedVersions(OURS)
    expect(versionProblems(stated, version)).to.deep.equal([])
    const files = ['package.json', 'package-lock.json', 'shared/client/package.json', 'deploy/Dockerfile']
    expect(stated.map(({ file }) => file)).to.include.members([...files, 'shared/client-python/pyproject.toml'])
    expect(versionProblems([...stated.slice(0, 1), { file: 'a', version: undefined }], '9.9.9')).to.deep.equal([
      `package.json states ${version}: package.json has 9.9.9`,
      'a states no version: package.json has 9.9.9',
    ])
  })

  it('is one licence: LICENSE, the packages, the API document and the image name it, and LICENSE those that `npm run licences` accepts', async () => {
    const text = await read('LICENSE')
    const { info } = (await apiDocument()) as unknown as { info: { license: { identifier: string } } }
    expect(text).to.include(info.license.identifier)
    expect(license).to.equal('SEE LICENSE IN LICENSE')
    expect(JSON.parse(await read('shared/client/package.json'))).to.have.property('license', license)
    for (const file of ['shared/client-python/pyproject.toml', 'deploy/Dockerfile'])
      expect(await read(file), file).to.include(info.license.identifier)
    const [, accepted = ''] = /const ACCEPTED = new Set\(\[([^\]]*)\]\)/.exec(await read('scripts/licences.ts')) ?? []
    const [, named = ''] = /which is one of ([^]*?)\. /.exec(text) ?? []
    expect(named.split(/,\s+/)).to.have.members([...accepted.matchAll(/'(.+)'/g)].map(([, name]) => name))
  })
})

describe('the entry of the changelog', () => {
  const dir = useTempFolder({ perTest: true })

  it('has the subjects of all commits without a tag, and else of those since the last one, the newest first; a tag of HEAD is its own', async () => {
    const repository = new Repository(dir.path)
    await repository.git('init', '--quiet')
    await repository.commit('Begin')
    await repository.commit('Add a thing')
    const subjectsOf = (entry: string) => entry.match(/(?<=^- ).*/gm)
    expect(changelogEntry(dir.path, '1.0.0')).to.match(/^## 1\.0\.0 \(\d{4}-\d\d-\d\d\)\n\nAll commits:\n/)
    expect(subjectsOf(changelogEntry(dir.path, '1.0.0'))).to.deep.equal(['Add a thing', 'Begin'])
    await repository.git('tag', 'v1.0.0')
    expect(subjectsOf(changelogEntry(dir.path, '1.0.0'))).to.deep.equal(['Add a thing', 'Begin'])
    await repository.commit('Mend it')
    await repository.commit('Say what it does')
    await repository.git('tag', '--annotate', '--message', 'next', 'v1.0.1')
    const entry = changelogEntry(dir.path, '1.0.1')
    expect(subjectsOf(entry)).to.deep.equal(['Say what it does', 'Mend it'])
    expect(entry).to.include('Since v1.0.0:').and.not.include('Why.')
  })
})

describe('npm run release:pack', function () {
  this.timeout(180_000)
  const dir = useTempFolder()
  let repository: Repository
  before(async () => {
    repository = new Repository(join(dir.path, 'clone'))
    await cp(OURS, repository.dir, { recursive: true, filter: (path) => !MADE.test(relative(OURS, path)) })
    await symlink(join(OURS, 'node_modules'), join(repository.dir, 'node_modules'))
    const chart = join(repository.dir, 'deploy/helm/other')
    await mkdir(chart, { recursive: true })
    await writeFile(join(chart, 'Chart.yaml'), `apiVersion: v2\nname: other\nversion: ${version}\n`)
    await repository.git('init', '--quiet')
    await repository.git('add', '--all')
    await repository.commit('Begin')
  })

  const pack = (...args: string[]) =>
    run(process.execPath, ['scripts/release/main.ts', ...args], { cwd: repository.dir, maxBuffer: 64 * 1024 * 1024 })
  const entriesOf = async (file: string) => (await run('tar', ['--list', '--file', file])).stdout.trim().split('\n')

  it('makes the packages of both clients, the build context, the SBOM, the API document and the changelog, with their sums', async () => {
    const out = join(dir.path, 'release')
    await pack('--out', out)
    const sums = (await readFile(join(out, 'SHA256SUMS'), 'utf8')).trim().split('\n')
    const files = new Map(sums.map((line) => [line.slice(66), line.slice(0, 64)]))
    for (const [file, sum] of files)
      expect(
        createHash('sha256')
          .update(await readFile(join(out, file)))
          .digest('hex'),
        file,
      ).to.equal(sum)
    expect([...files.keys()]).to.include.members([
      `CHANGELOG-${version}.md`,
      `agent-engine-${version}.cdx.json`,
      `agent-engine-${version}.openapi.yaml`,
      `agent-engine-client-${version}.tgz`,
      `agent-engine-image-${version}.tar.gz`,
      `agent_engine_client-${version}-py3-none-any.whl`,
      `other-${version}.tgz`,
    ])
    const context = await entriesOf(join(out, `agent-engine-image-${version}.tar.gz`))
    const inContext = ['package-lock.json', '.npmrc', 'LICENSE', 'deploy/Dockerfile', 'deploy/Dockerfile.dockerignore']
    for (const file of [...inContext, 'services/gateway/main.ts', 'shared/kernel/ids.ts', 'scripts/healthcheck.ts'])
      expect(context).to.include(`agent-engine-${version}/${file}`)
    expect(context.filter((file) => /\/(node_modules|test|built)\//.test(file))).to.deep.equal([])
    const client = await entriesOf(join(out, `agent-engine-client-${version}.tgz`))
    expect(client).to.include.members(['package/LICENSE', 'package/dist/client/client.js'])
    expect(await readFile(join(out, `CHANGELOG-${version}.md`), 'utf8')).to.include('- Begin\n')
  })

  it('makes the same archive of the build context of the same commit, and packs each chart as a folder of its name', async () => {
    const [one, two] = [join(dir.path, 'one'), join(dir.path, 'two')]
    for (const out of [one, two]) {
      await mkdir(out)
      const script = `import('./scripts/release/archives.ts').then((it) => { it.packContext('.', '${out}', '1'); it.packCharts('.', '${out}', '1') })`
      await run(process.execPath, ['-e', script], { cwd: repository.dir })
    }
    for (const file of ['agent-engine-image-1.tar.gz', 'other-1.tgz'])
      expect(await readFile(join(one, file)), file).to.deep.equal(await readFile(join(two, file)))
    expect(await entriesOf(join(one, 'other-1.tgz'))).to.deep.equal(['other/Chart.yaml'])
  })

  it('refuses changes that are not committed, and a version that differs, before it makes anything', async () => {
    await writeFile(join(repository.dir, 'deploy/helm/other/Chart.yaml'), 'version: 9.9.9\n')
    const out = join(dir.path, 'refused')
    const failed = (await pack('--out', out).catch((cause: unknown) => cause)) as { code: number; stderr: string }
    expect(failed.code).to.equal(1)
    expect(failed.stderr).to.include(`deploy/helm/other/Chart.yaml states 9.9.9: package.json has ${version}`)
    expect(failed.stderr).to.include('commit or remove these first:\n M deploy/helm/other/Chart.yaml')
    expect(await readFile(join(out, 'SHA256SUMS'), 'utf8').catch(String)).to.include('ENOENT')
  })

  it('adds the packages for development that it needs to those of scripts/start', async () => {
    await using project = await makeProject({
      'scripts/release/main.ts': "console.log('packed', ...process.argv.slice(2))",
    })
    const { code, stdout } = await project.start('scripts/pack-release', ['--out', 'x']).ended
    expect([code, stdout]).to.deep.equal([0, 'packed --out x\n'])
    expect((await project.npmCalls())[0]).to.match(/^npm ci --include=dev /)
  })
})
