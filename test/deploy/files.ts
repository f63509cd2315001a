import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { FIELDS, type Field } from '../../shared/platform/config/fields.ts'
import { targetFields } from '../../shared/platform/config/target-fields.ts'

/** The project's folder, with a slash at its end. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Reads a file in `deploy/`. */
export const readDeploy = (name: string): string => readFileSync(`${ROOT}deploy/${name}`, 'utf8')

/** Every setting, and the usual variables of the providers' keys. */
export const SETTINGS: ReadonlyMap<string, Field<unknown>> = new Map(
  [FIELDS, targetFields('MODEL'), targetFields('FALLBACK_MODEL')]
    .flatMap((table) => Object.values<Field<unknown>>(table))
    .map((field) => [field.name, field]),
)

/** Seconds from SIGTERM until a process that drains has ended at the latest: DRAIN_SECS and the time of the closers. */
export const LONGEST_STOP_SECS = Number(FIELDS.drainMs.fallback) + 10

/** A service of compose.yaml, with the fields that the tests look at. */
export type Service = {
  image: string
  command: string[]
  environment?: Record<string, string>
  depends_on?: Record<string, { condition: string }>
  networks?: string[]
  volumes?: string[]
  read_only?: boolean
  cap_drop?: string[]
  stop_grace_period?: string
  build?: { context: string; dockerfile: string }
  [key: string]: unknown
}

export type Compose = {
  services: Record<string, Service>
  networks: Record<string, { internal?: boolean } | null>
  volumes: Record<string, unknown>
  [key: string]: unknown
}

/** compose.yaml with its aliases and merges resolved. */
export const readCompose = (name = 'compose.yaml'): Compose =>
  parse(readDeploy(name), { merge: true, strict: true }) as Compose

/** Texts of compose.yaml with the values of its variables, as Compose replaces them. */
export const interpolated = (
  texts: readonly (string | undefined)[],
  values: Readonly<Record<string, string>>,
): string[] =>
  texts.map((text = '') =>
    text.replaceAll(/\$\$|\$\{(\w+)[^}]*\}/g, (_all, name?: string) =>
      name === undefined ? '$' : (values[name] ?? ''),
    ),
  )

/** The services of compose.yaml that run a process of the product, with their role. */
export function productServices({ services }: Compose): { name: string; role: string; service: Service }[] {
  return Object.entries(services).flatMap(([name, service]) => {
    const role = /^services\/(\w+)\/main\.ts$/.exec(service.command.at(0) ?? '')?.[1]
    return role === undefined ? [] : [{ name, role, service }]
  })
}

/** The variables of .env.example with their values. */
export function readEnvExample(): Record<string, string> {
  const lines = readDeploy('.env.example').split('\n')
  return Object.fromEntries(
    lines
      .filter((line) => line && !line.startsWith('#'))
      .map((line) => [...(/^([A-Z_]+)=(.*)$/.exec(line) ?? [])].slice(1)),
  ) as Record<string, string>
}
