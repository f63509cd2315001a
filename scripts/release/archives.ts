import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { git } from './changelog.ts'

type Archive = { file: string; paths: readonly string[]; from: string; to: string }

/** Packs what `docker build --file deploy/Dockerfile .` needs, with all of deploy/, in a folder of the version's name. */
export function packContext(root: string, out: string, version: string): void {
  const copied = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8').matchAll(/^COPY (?!--from)(.+) \S+$/gm)
  const paths = [...copied].flatMap(([, sources = '']) => sources.split(' '))
  const folder = `agent-engine-${version}`
  pack(root, {
    file: join(out, `agent-engine-image-${version}.tar.gz`),
    paths: [...paths, 'deploy', 'LICENSE'],
    from: '',
    to: `${folder}/`,
  })
}

/** Packs each chart as `helm package` does: `<name>-<version>.tgz` with one folder of the chart's name. */
export function packCharts(root: string, out: string, version: string): void {
  for (const chart of globSync('deploy/helm/*/Chart.yaml', { cwd: root }).map(dirname))
    pack(root, {
      file: join(out, `${basename(chart)}-${version}.tgz`),
      paths: [chart],
      from: `${dirname(chart)}/`,
      to: '',
    })
}

/** Packs the files that git knows, with the time of the last commit and no user, so that the same files make the same archive. */
function pack(root: string, { file, paths, from, to }: Archive): void {
  const files = git(root, 'ls-files', '-z', '--', ...new Set(paths))
  const time = git(root, 'log', '-1', '--format=%ct').trim()
  const same = [
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    `--mtime=@${time}`,
    '--use-compress-program=gzip -n',
  ]
  const named = ['--null', '--files-from=-', `--transform=flags=r;s,^${from},${to},`]
  execFileSync('tar', ['--create', '--file', file, '--directory', root, ...same, ...named], { input: files })
}
