import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ensurePythonClient } from '../local-services/python-client.ts'
import { packCharts, packContext } from './archives.ts'
import { changelogEntry, git } from './changelog.ts'
import { statedVersions, versionProblems } from './versions.ts'

const HELP = `usage: npm run release:pack -- [--out DIR]

Makes what a release publishes, of the files of this clone, in DIR (release):
  agent-engine-client-V.tgz                        the TypeScript client
  agent_engine_client-V-py3-none-any.whl           the Python client
  agent-engine-image-V.tar.gz                      the build context of the image, and deploy/
  agent-engine-V.tgz                               the Helm chart
  agent-engine-V.cdx.json                          the packages of the image (CycloneDX)
  agent-engine-V.openapi.yaml                      the API document
  CHANGELOG-V.md                                   the subjects of the commits since the last tag
  SHA256SUMS
V is the version of package.json, and every file that states it must agree.
`

const root = resolve(import.meta.dirname, '../..')
const { values } = parseArgs({ options: { out: { type: 'string', default: 'release' }, help: { type: 'boolean' } } })
if (values.help) process.stdout.write(HELP)
else await packRelease(resolve(values.out))

async function packRelease(out: string): Promise<void> {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const problems = [...versionProblems(statedVersions(root), version), ...historyProblems()]
  if (problems.length > 0) {
    process.stderr.write(`${problems.join('\n')}\n`)
    process.exitCode = 1
    return
  }
  mkdirSync(out, { recursive: true })
  run('npm', ['pack', './shared/client', '--ignore-scripts=false', '--silent', '--pack-destination', out])
  await packPythonClient(out)
  packContext(root, out, version)
  packCharts(root, out, version)
  const name = join(out, `agent-engine-${version}`)
  writeFileSync(`${name}.cdx.json`, run(process.execPath, ['scripts/sbom.ts']))
  copyFileSync(join(root, 'shared/platform/api/openapi.yaml'), `${name}.openapi.yaml`)
  writeFileSync(join(out, `CHANGELOG-${version}.md`), changelogEntry(root, version))
  writeSums(out, version)
}

/** The builder comes pinned, with the packages that the tests of the client use. */
async function packPythonClient(out: string): Promise<void> {
  const PYTHONPATH = await ensurePythonClient((line) => process.stderr.write(`${line}\n`))
  const quiet = ['--quiet', '--disable-pip-version-check', '--no-deps', '--no-build-isolation']
  run('python3', ['-m', 'pip', 'wheel', ...quiet, '--wheel-dir', out, './shared/client-python'], { PYTHONPATH })
}

/** The changelog needs the history, which an unpacked archive has not. Changes that are not committed would be in the archives, but in no commit. */
function historyProblems(): string[] {
  try {
    const changed = git(root, 'status', '--porcelain').split('\n').filter(Boolean)
    return changed.length === 0 ? [] : [`commit or remove these first:\n${changed.join('\n')}`]
  } catch {
    return ['there is no history: pack a release in a clone of the project']
  }
}

/** Runs a program in the project's folder, and returns what it prints. */
function run(program: string, args: string[], env: NodeJS.ProcessEnv = {}): Buffer {
  return execFileSync(program, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 64 * 1024 * 1024,
  })
}

/** The sums of the files of this version, which are also listed. */
function writeSums(out: string, version: string): void {
  const files = readdirSync(out).filter((file) => file.includes(version))
  const sums = files.map(
    (file) =>
      `${createHash('sha256')
        .update(readFileSync(join(out, file)))
        .digest('hex')}  ${file}\n`,
  )
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''))
  process.stdout.write(`${out}:\n${sums.join('')}`)
}
