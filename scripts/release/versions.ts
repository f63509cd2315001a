import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Stated = { file: string; version: string | undefined }

const PACKAGE = /"name": "(?:@agent-engine\/client|agent-engine)",\s+"version": "([^"]+)"/g
const ARCHIVE = /agent[-_]engine[-_]client-(\d[^-\s]*?)(?:\.tgz|-py3)/g

/** The files that state the version of the product, and how. A pattern of files may match none, where a part of the project is missing. */
const PLACES: readonly (readonly [files: string, statement: RegExp])[] = [
  ['package.json', PACKAGE],
  ['package-lock.json', PACKAGE],
  ['shared/client/package.json', PACKAGE],
  ['shared/client/README.md', ARCHIVE],
  ['shared/client-python/pyproject.toml', /^version = "([^"]+)"$/gm],
  ['shared/client-python/README.md', ARCHIVE],
  ['deploy/Dockerfile', /org\.opencontainers\.image\.version="([^"]+)"/g],
  ['deploy/helm/*/Chart.yaml', /^(?:version|appVersion): "?([^"\s]+)/gm],
  ['deploy/k8s/overlays/production/kustomization.yaml', /newTag: ([^}\s]+)/g],
]

/** The versions that the project in `root` states, each with its file. A file that should state one and does not has `undefined`. */
export function statedVersions(root: string): Stated[] {
  return PLACES.flatMap(([files, statement]) =>
    globSync(files, { cwd: root }).map((file) => ({ file, statement })),
  ).flatMap(({ file, statement }) => {
    const found = [...readFileSync(join(root, file), 'utf8').matchAll(statement)]
    return found.length === 0 ? [{ file, version: undefined }] : found.map(([, version]) => ({ file, version }))
  })
}

/** One line for each statement that differs from `version`. */
export const versionProblems = (stated: readonly Stated[], version: string): string[] =>
  stated
    .filter((each) => each.version !== version)
    .map((each) => `${each.file} states ${each.version ?? 'no version'}: package.json has ${version}`)
