// Choice and removal of models. The chosen model becomes the setting, and the server restarts with it.
import * as vscode from "vscode";
import { reportNotRunning } from "./actions";
import { SECTION } from "./configuration";
import type { ModelGetter } from "./modelGetter";
import {
  type Ask,
  addressProblem,
  findEndpoints,
  type ModelChoice,
  modelChoices,
  removalChoices,
  removalMessage,
  removalQuestion,
} from "./models";
import { type InstalledModel, readModels, readRemoved, SERVER_COMMANDS } from "./protocol";
import type { Server } from "./server";
import { withoutLinks } from "./state";

const TITLE = "fim-server: Choose a Model";
const REMOVE_TITLE = "fim-server: Remove a Model";
const REMOVE = "Remove";

/** Milliseconds for a local port to answer. */
const PATIENCE = 1_000;

/** Milliseconds for the server to list models. It may be starting, or too old to answer. */
const LISTING_PATIENCE = 5_000;

/** Asks for a model and sets it, unless the user cancels. */
export async function chooseModel(server: Server, getter: ModelGetter): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const levels = configuration.inspect<string | null>("model");
  const listed = installedModels(server);
  const items = listed.then((installed) => grouped(modelChoices(configuration.get("model"), installed)));
  const chosen = await vscode.window.showQuickPick(items, { title: TITLE, matchOnDescription: true });
  if (chosen === undefined || chosen.value === undefined) {
    return;
  }
  const ask = typeof chosen.value === "object" && chosen.value !== null ? chosen.value : undefined;
  if (ask?.ask === "remove") {
    await removeModel(server, await listed);
    return;
  }
  const value = ask === undefined ? (chosen.value as string | null) : await asked(ask, getter);
  if (value === undefined) {
    return;
  }
  // A model in the workspace's settings overrides the user's.
  const target =
    levels?.workspaceValue === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
  await configuration.update("model", value === null ? undefined : value, target);
}

/** Asks for a model and a confirmation, then removes it. */
export async function removeModel(server: Server, known?: readonly InstalledModel[]): Promise<void> {
  const items = (known === undefined ? installedModels(server) : Promise.resolve(known)).then(removalChoices);
  if ((await items).length === 0) {
    void vscode.window.showInformationMessage("fim-server: there is no model to remove.");
    return;
  }
  const chosen = await vscode.window.showQuickPick(items, { title: REMOVE_TITLE });
  if (chosen === undefined) {
    return;
  }
  const { name } = chosen.model;
  // The server itself refuses a model in use.
  if (!chosen.model.inUse) {
    const question = removalQuestion(chosen.model);
    if ((await vscode.window.showWarningMessage(question, { modal: true }, REMOVE)) !== REMOVE) {
      return;
    }
  }
  const connection = await server.connected();
  if (connection === undefined) {
    reportNotRunning(server);
    return;
  }
  try {
    const outcome = removalMessage(readRemoved(await connection.execute(SERVER_COMMANDS.removeModel, [{ name }])));
    const show = outcome.isProblem ? vscode.window.showErrorMessage : vscode.window.showInformationMessage;
    void show(withoutLinks(outcome.message));
  } catch (error) {
    void vscode.window.showErrorMessage(withoutLinks(`fim-server: ${error instanceof Error ? error.message : error}`));
  }
}

/** Returns the installed models; none if the server does not answer. Never fails. */
async function installedModels(server: Server): Promise<InstalledModel[]> {
  const ask = async () => readModels(await (await server.connected())?.execute(SERVER_COMMANDS.models, []));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<InstalledModel[]>((resolve) => {
    timer = setTimeout(() => resolve([]), LISTING_PATIENCE);
  });
  const found = await Promise.race([ask().catch(() => []), late]);
  clearTimeout(timer);
  return found;
}

/** Adds separators between groups. */
function grouped(choices: readonly ModelChoice[]): (vscode.QuickPickItem & { value?: ModelChoice["value"] })[] {
  return choices.flatMap((choice, index) => {
    const begins = choice.group !== "" && choice.group !== choices[index - 1]?.group;
    return [...(begins ? [{ label: choice.group, kind: vscode.QuickPickItemKind.Separator }] : []), choice];
  });
}

async function asked({ ask, name }: Ask, getter: ModelGetter): Promise<string | undefined> {
  switch (ask) {
    case "get":
      return (await getter.get(name)) ? name : undefined;
    case "file": {
      const filters = { "GGUF files": ["gguf"] };
      const files = await vscode.window.showOpenDialog({ title: TITLE, filters, canSelectMany: false });
      return files?.[0]?.fsPath;
    }
    case "endpoints":
      return await askEndpoint();
    case "address": {
      const prompt = "http://HOST:PORT, followed by #MODEL if it serves several";
      const text = await vscode.window.showInputBox({ title: TITLE, prompt, validateInput: addressProblem });
      return text?.trim() || undefined;
    }
    default: {
      const prompt = "A folder with a model, or a name on the Hugging Face hub to download";
      const text = await vscode.window.showInputBox({ title: TITLE, prompt });
      return text?.trim() || undefined;
    }
  }
}

async function askEndpoint(): Promise<string | undefined> {
  const location = vscode.ProgressLocation.Notification;
  const looking = { location, title: "fim-server: looking for endpoints on this machine" };
  const found = await vscode.window.withProgress(looking, () => findEndpoints(getJson));
  if (found.length === 0) {
    void vscode.window.showInformationMessage(
      "fim-server: no endpoint found on the default ports of llama.cpp, Ollama, LM Studio and vLLM. Start one, or enter its address.",
    );
    return undefined;
  }
  const items = found.map((one) => ({
    label: one.model,
    description: `${one.kind}, ${one.address}`,
    address: one.address,
  }));
  return (await vscode.window.showQuickPick(items, { title: TITLE }))?.address;
}

async function getJson(url: string): Promise<unknown> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE), redirect: "error" });
    return response.ok ? await response.json() : undefined;
  } catch {
    return undefined;
  }
}
