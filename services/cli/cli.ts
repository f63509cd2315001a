import type { Command } from 'commander'
import type { AgentEngine } from '../../shared/client/client.ts'
import { type Choice, findTarget, type Target } from './connect/target.ts'
import type { Io } from './io.ts'
import { createOutput, type Output } from './output.ts'

/** The parts of the command line that a command uses. */
export type Cli = {
  io: Io
  output: Output
  /** The server and the profile, taken from the options, the environment or the stored profiles. */
  target(): Promise<Target>
  engine(): Promise<AgentEngine>
  /** The exit code of a command that ends without an error. */
  exitWith(code: number): void
}

/** Adds arguments, options and the action to a command. */
export type Define = (command: Command, cli: Cli) => void

/** `choice` gives the options that are for all commands. */
export function createCli(io: Io, choice: () => Choice, exitWith: (code: number) => void): Cli {
  const target = () => findTarget(io, choice())
  // Loaded for the commands that use it: `ae --help` needs no client.
  const engine = async () => (await import('./connect/connect.ts')).connect(io, await target())
  return { io, output: createOutput(io), target, engine, exitWith }
}
