import { execFile } from 'node:child_process'
import { chownSync, copyFileSync, cpSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { StandIns } from '../support/stand-ins.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { contextFilter, filesBelow } from './build-context.ts'
import { copiesOf, type Instruction, readDockerfile, type Stage } from './dockerfile.ts'
import { ROOT } from './files.ts'

const run = promisify(execFile)
/** The user `node` of the official image. */
export const USER = { uid: 1000, gid: 1000 }
export const isRoot = process.getuid?.() === 0

export type BuildFiles = { dockerfile: string; ignore: string }

/**
 * The folders `/app` of stages of deploy/Dockerfile, made without a container: each holds what the stage's COPY and .dockerignore let through,
 * and each RUN was executed in it. `npm ci` is the exception: in place of a download it links those packages of this checkout that
 * package-lock.json marks for its arguments. Stages that install programs of the system are left out.
 */
export class StageFolders implements AsyncDisposable {
  readonly #dir: TempFolder
  readonly #npm: StandIns
  readonly #stages: readonly Stage[]
  readonly #isLetThrough: (path: string) => boolean

  private constructor(dir: TempFolder, npm: StandIns, { dockerfile, ignore }: BuildFiles) {
    this.#dir = dir
    this.#npm = npm
    this.#stages = readDockerfile(dockerfile)
    this.#isLetThrough = contextFilter(ignore)
  }

  static async open(files: BuildFiles): Promise<StageFolders> {
    const dir = await makeTempFolder()
    await chmod(dir.path, 0o755)
    const npm = await StandIns.start({ npm: async (args, cwd) => linkPackages(args, cwd) })
    return new StageFolders(dir, npm, files)
  }

  /** Executes a stage; the one without a name is the image. Throws what a RUN prints when it fails. Returns the folder. */
  async execute(name?: string): Promise<string> {
    const folder = this.#folderOf(name)
    await mkdir(join(folder, '.compile-cache'), { recursive: true })
    if (isRoot) chownSync(join(folder, '.compile-cache'), USER.uid, USER.gid)
    const { instructions = [] } = this.#stages.find((stage) => stage.name === name) ?? {}
    const env: Record<string, string> = { PATH: `${this.#npm.bin}:${dirname(process.execPath)}:${process.env['PATH']}` }
    let user = {}
    for (const instruction of instructions) {
      if (instruction.keyword === 'COPY') this.#copy(instruction, folder)
      if (instruction.keyword === 'USER' && isRoot) user = USER
      if (instruction.keyword === 'ENV') Object.assign(env, variablesOf(instruction.args, folder))
      if (instruction.keyword === 'RUN') await run('sh', ['-c', instruction.args], { cwd: folder, env, ...user })
    }
    return folder
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#npm[Symbol.asyncDispose]()
    await this.#dir[Symbol.asyncDispose]()
  }

  #folderOf = (name = 'image') => join(this.#dir.path, name)

  #copy(instruction: Instruction, folder: string): void {
    const [, stage, path = '', place = ''] = /^--from=(\S+) (\S+) (\S+)$/.exec(instruction.args) ?? []
    if (stage !== undefined && path !== '/')
      cpSync(join(this.#folderOf(stage), path.replace(/^\/app/, '')), join(folder, place), { recursive: true })
    for (const { source, target } of copiesOf([instruction])) {
      const files = filesBelow(ROOT, source, this.#isLetThrough)
      if (files.length === 0) throw new Error(`COPY failed: ${source} is not there, or .dockerignore excludes it`)
      for (const file of files) cpSync(ROOT + file, join(folder, target, file.slice(source.length)))
    }
  }
}

/** The variables of an ENV instruction, whose paths are in the stage's folder. PATH stays the machine's. */
const variablesOf = (args: string, folder: string): Record<string, string> =>
  Object.fromEntries(
    [...args.matchAll(/(\w+)=(\S+)/g)]
      .map(([, name = '', value = '']) => [name, value.replace(/^\/app\b/, folder)])
      .filter(([name]) => name !== 'PATH'),
  )

type Package = { dev?: boolean; optional?: boolean; devOptional?: boolean }

/** Does what `npm ci` does with these arguments. */
function linkPackages([command, ...args]: string[], folder: string): string {
  if (command !== 'ci' || !args.includes('--omit=dev'))
    throw new Error(`npm ${command} ${args.join(' ')} is not imitated`)
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Package>
  }
  const hasOptional = !args.includes('--omit=optional')
  for (const [path, { dev, optional, devOptional }] of Object.entries(lock.packages)) {
    if (path === '' || dev || ((optional || devOptional) && !hasOptional) || !existsSync(ROOT + path)) continue
    linkTree(ROOT + path, join(folder, path))
  }
  return ''
}

/** Links the files of a package, without the packages inside it. */
function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true })
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory() && entry.name !== 'node_modules') linkTree(source, target)
    if (entry.isFile()) linkFile(source, target)
  }
}

/** Links a file, or copies it where the folder for temporary files is on another file system than this checkout. */
function linkFile(source: string, target: string): void {
  try {
    linkSync(source, target)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EXDEV') throw cause
    copyFileSync(source, target)
  }
}
