import { appendFile, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { isGone, makeProject, OURS } from './project.ts'

const MAIN = { 'services/standalone/main.ts': `console.log('main', process.cwd(), ...process.argv.slice(2))` }

describe('scripts/start (D1.1)', () => {
  it('installs on a fresh machine, and runs the standalone form in the project folder with the arguments', async () => {
    await using project = await makeProject(MAIN)
    const { code, stdout, stderr } = await project.start('scripts/start', ['--flag']).ended
    expect(code).to.equal(0)
    expect(stdout).to.equal(`main ${project.root} --flag\n`)
    expect(stderr).to.match(/^Installing .*\nStarting the standalone form on Node v\d+.*\n$/)
    expect(await project.npmCalls()).to.have.length(1)
  })

  it('installs no packages for development, which scripts/test then adds', async () => {
    await using project = await makeProject({ ...MAIN, 'test/a.test.ts': '' })
    await project.start('scripts/start').ended
    expect((await project.npmCalls())[0]).to.match(/^npm ci --omit=dev /)
    await rm(join(project.root, 'node_modules/mocha'))
    await project.start('scripts/test', ['test/a.test.ts']).ended
    await project.start('scripts/start').ended
    expect((await project.npmCalls()).filter((call) => call.startsWith('npm ci')).slice(1)).to.have.length(1)
    expect((await project.npmCalls())[1]).to.match(/^npm ci --include=dev /)
  })

  it('knows the packages for development by one that npm installs for nothing else', async () => {
    const script = await readFile(join(OURS, 'scripts/ensure-node.sh'), 'utf8')
    const [, name = ''] = /^for_development=(\S+)$/m.exec(script) ?? []
    const lock = JSON.parse(await readFile(join(OURS, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, object>
    }
    expect(lock.packages[name]).to.include({ dev: true })
  })

  it('is enough for `npm run client:pack`, which adds the packages for development that it needs', async () => {
    await using project = await makeProject(MAIN)
    await project.start('scripts/start').ended
    await rm(join(project.root, 'node_modules/mocha'))
    expect((await project.start('scripts/pack-client', ['--pack-destination', 'x']).ended).code).to.equal(0)
    const [install, pack] = (await project.npmCalls()).slice(1)
    expect(install).to.match(/^npm ci --include=dev /)
    expect(pack).to.equal('npm pack ./shared/client --ignore-scripts=false --pack-destination x')
  })

  it('is idempotent: packages are not installed again until the lock file changes', async () => {
    await using project = await makeProject(MAIN)
    await project.start('scripts/start').ended
    await project.start('scripts/start').ended
    expect(await project.npmCalls()).to.have.length(1)
    await appendFile(join(project.root, 'package-lock.json'), '\n')
    await project.start('scripts/start').ended
    expect(await project.npmCalls()).to.have.length(2)
  })

  it('keeps packages for development that are there when the lock file changes', async () => {
    await using project = await makeProject({ ...MAIN, 'test/a.test.ts': '' })
    await project.start('scripts/test', ['test/a.test.ts']).ended
    await appendFile(join(project.root, 'package-lock.json'), '\n')
    await project.start('scripts/start').ended
    expect((await project.npmCalls()).at(-1)).to.match(/^npm ci --include=dev /)
  })

  it('uses the packages that `npm ci` by hand has installed', async () => {
    await using project = await makeProject({ ...MAIN, 'node_modules/.package-lock.json': '{}' })
    expect((await project.start('scripts/start').ended).code).to.equal(0)
    expect(await project.npmCalls()).to.deep.equal([])
  })

  it('D1.1: an older Node prints one line with the required version and where to get it, and exits with 1', async () => {
    await using project = await makeProject({ ...MAIN, 'node_modules/.package-lock.json': '{}' }, '>=999')
    const { code, stdout, stderr } = await project.start('scripts/start').ended
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' })
    expect(stderr).to.match(/^agent-engine needs Node 999 or newer and this is v\d[^\n]*https:\/\/nodejs\.org[^\n]*\n$/)
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`passes ${signal} on and returns the exit code`, async () => {
      const main = `process.on('${signal}', () => process.exit(7))\nconsole.log('up')\nsetInterval(() => {}, 1000)`
      await using project = await makeProject({ 'services/standalone/main.ts': main })
      const running = project.start('scripts/start')
      await running.says(/up/)
      running.kill(signal)
      expect((await running.ended).code).to.equal(7)
    })
  }

  it('a signal during the installation ends the installation too', async () => {
    await using project = await makeProject(MAIN)
    const running = project.start('scripts/start', [], { SLOW_NPM: 'true' })
    const pid = await running.says(/pid (\d+)\n/)
    running.kill('SIGTERM')
    const { code, stdout } = await running.ended
    expect({ code, stdout }).to.deep.equal({ code: 143, stdout: '' })
    expect(await isGone(pid)).to.equal(true)
  })
})
