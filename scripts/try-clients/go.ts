import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { call, prepare, type Trial } from './trial.ts'

const GENERATOR = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'

const MODULE = 'module try\n\ngo 1.24\n'

const PROGRAM = `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"try/engine"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx := context.Background()
	edit := engine.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+os.Args[2])
		req.Header.Set("Accept", "application/json")
		return nil
	})
	api := must(engine.NewClientWithResponses(os.Args[1], edit))

	parallel := true
	steps := []engine.PlanStep{{Id: "one", Prompt: "Count to one."}}
	submitted := must(api.SubmitPlanWithResponse(ctx, nil, engine.PlanRequest{Steps: steps, Parallel: &parallel}))
	plan := must(api.GetPlanWithResponse(ctx, submitted.JSON202.Id)).JSON200
	answer := must(api.StartRunWithResponse(ctx, nil, engine.RunRequest{Prompt: "Hello"}))

	var text, object engine.MemoryContent
	must(0, text.FromMemoryContent0("a text"))
	must(0, object.FromMemoryObject(engine.MemoryObject{"of": "an object"}))
	memory := []engine.MemoryContent{}
	for _, content := range []engine.MemoryContent{text, object} {
		must(api.AddFlowMemoryWithResponse(ctx, "summarize", nil, engine.FlowMemoryRequest{Content: content}))
	}
	for _, entry := range must(api.ListFlowMemoryWithResponse(ctx, "summarize", nil)).JSON200.Entries {
		memory = append([]engine.MemoryContent{entry.Content}, memory...)
	}
	// Marshal writes the keys in their order.
	printed := map[string]any{"output": answer.JSON200.Output, "parallel": plan.Parallel, "step": plan.Steps[0].Id}
	head := string(must(json.Marshal(printed)))
	fmt.Printf("%s,\\"memory\\":%s}\\n", head[:len(head)-1], must(json.Marshal(memory)))
}
`

/** Makes a client with oapi-codegen, compiles all of it, and prints what the program gets. */
export async function tryGo(trial: Trial): Promise<string> {
  const { folder, url, token } = trial
  await prepare(trial, 'main.go', PROGRAM)
  await prepare({ ...trial, folder: join(folder, 'engine') }, '../go.mod', MODULE)
  const generator = join(folder, 'bin', 'oapi-codegen')
  const isThere = await access(generator).then(
    () => true,
    () => false,
  )
  if (!isThere) await call(folder, ['go', 'install', GENERATOR], { GOBIN: join(folder, 'bin') })
  const options = ['-generate', 'types,client', '-package', 'engine', '-o', 'engine/client.go']
  await call(folder, [generator, ...options, 'openapi.json'])
  await call(folder, ['go', 'mod', 'tidy'])
  return call(folder, ['go', 'run', '.', url, token])
}
