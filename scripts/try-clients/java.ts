import { access, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { call, prepare, type Trial } from './trial.ts'

const VERSION = '7.17.0'
const JAR = `openapi-generator-cli-${VERSION}.jar`
const FROM = `https://repo1.maven.org/maven2/org/openapitools/openapi-generator-cli/${VERSION}/${JAR}`

const PROGRAM = `import java.util.*;
import org.openapitools.client.*;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

public class Try {
  public static void main(String[] args) throws Exception {
    ApiClient api = new ApiClient();
    api.setBasePath(args[0]);
    api.addDefaultHeader("Authorization", "Bearer " + args[1]);

    PlansApi plans = new PlansApi(api);
    PlanRequest request = new PlanRequest().parallel(true).addStepsItem(new PlanStep().id("one").prompt("Count to one."));
    Plan plan = plans.getPlan(plans.submitPlan(request, null).getId());
    RunAnswer answer = new RunsApi(api).startRun(new RunRequest().prompt("Hello"), null, null, null);

    FlowsApi flows = new FlowsApi(api);
    for (Object content : List.of("a text", new MemoryObject().putAdditionalProperty("of", "an object")))
      flows.addFlowMemory("summarize", new FlowMemoryRequest().content(new MemoryContent(content)), null);
    List<Object> memory = new ArrayList<>();
    for (MemoryEntry entry : flows.listFlowMemory("summarize", null, null, null).getEntries())
      memory.add(0, entry.getContent().getActualInstance());

    Map<String, Object> printed = new LinkedHashMap<>();
    printed.put("output", answer.getOutput());
    printed.put("parallel", plan.getParallel());
    printed.put("step", plan.getSteps().get(0).getId());
    printed.put("memory", memory);
    System.out.println(JSON.getGson().toJson(printed));
    System.exit(0); // The threads of okhttp stay for a minute.
  }
}
`

/** Makes a client with openapi-generator, compiles all of it, and prints what the program gets. */
export async function tryJava(trial: Trial): Promise<string> {
  const { folder, url, token } = trial
  await prepare(trial, 'README', 'Made by npm run try:clients.\n')
  const jar = join(folder, JAR)
  const isThere = await access(jar).then(
    () => true,
    () => false,
  )
  if (!isThere) await writeFile(jar, Buffer.from(await (await fetch(FROM)).arrayBuffer()))
  await call(folder, ['java', '-jar', jar, 'generate', '-g', 'java', '-i', 'openapi.json', '-o', 'client'])
  const client = join(folder, 'client')
  await writeFile(join(client, 'src/main/java/Try.java'), PROGRAM)
  const quiet = ['mvn', '-q', '-B', '-Dmaven.test.skip']
  await call(client, [...quiet, 'compile', 'dependency:build-classpath', '-Dmdep.outputFile=classpath'])
  const classpath = await readFile(join(client, 'classpath'), 'utf8')
  return call(client, ['java', '-cp', `target/classes:${classpath}`, 'Try', url, token])
}
