import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { canRun } from '../../scripts/local-services/apt.ts'
import { cacheDir } from '../../scripts/local-services/wheel.ts'
import { runCommand } from './command.ts'

/** The first release of Debian that has Docker Compose 2. Its program runs on the one before, too. */
const RELEASE = 'trixie'
const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg'
const ABSENT =
  'Docker Compose 2 is missing, and could not be fetched from Debian: install it (https://docs.docker.com/compose/install).'

/** Provides `docker compose`. Returns the DOCKER_CONFIG folder that has it, or undefined when Docker finds it without one. */
export async function composeFolder(say: (line: string) => void): Promise<string | undefined> {
  if (await canRun('docker', 'compose', 'version')) return undefined
  const folder = join(cacheDir(), 'docker-config')
  const plugin = join(folder, 'cli-plugins', 'docker-compose')
  if (await canRun(plugin, 'version')) return folder
  say('Fetching Docker Compose 2 from Debian (once for all clones) ...')
  await fetchPlugin(plugin).catch((cause: unknown) => {
    throw new Error(ABSENT, { cause })
  })
  return folder
}

/** Reads the package lists of another release in a folder of its own: the machine's own lists stay as they are. */
async function fetchPlugin(target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true })
  const dir = await mkdtemp(join(cacheDir(), '.compose-'))
  try {
    await mkdir(join(dir, 'lists'))
    await mkdir(join(dir, 'cache'))
    await writeFile(join(dir, 'sources'), `deb [signed-by=${KEYS}] ${await mirrorOfMachine()} ${RELEASE} main\n`)
    const settings = {
      'Dir::Etc::SourceList': join(dir, 'sources'),
      'Dir::Etc::SourceParts': '/dev/null',
      'Dir::State::Lists': join(dir, 'lists'),
      'Dir::Cache': join(dir, 'cache'),
      'APT::Sandbox::User': 'root', // Who owns the folder.
    }
    const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    await runCommand('apt-get', [...options, '-qq', 'update'], { cwd: dir })
    await runCommand('apt-get', [...options, '-qq', 'download', 'docker-compose'], { cwd: dir })
    const file = (await readdir(dir)).find((name) => name.endsWith('.deb')) ?? ''
    await runCommand('dpkg-deb', ['--extract', join(dir, file), join(dir, 'package')])
    await rename(join(dir, 'package/usr/libexec/docker/cli-plugins/docker-compose'), target)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** The address from which this machine has the packages of its own release. */
export async function mirrorOfMachine(): Promise<string> {
  const format = ['indextargets', '--format', '$(SITE) $(COMPONENT)', 'Created-By: Packages']
  const lines = (await runCommand('apt-get', format)).split('\n')
  const [site = ''] = lines.find((line) => line.endsWith('/debian main'))?.split(' ') ?? lines[0]?.split(' ') ?? []
  return site
}
