import { render } from "preact";
import { App } from "./frame/app.tsx";
import { PAGES } from "./pages/pages.ts";
import { followLocation } from "./state/location.ts";
import { applySettings } from "./state/settings.ts";
import "uplot/dist/uPlot.min.css";
import "./style/tokens.css";
import "./style/base.css";
import "./style/frame.css";
import "./style/parts.css";
import "./style/tags.css";

followLocation(PAGES.map(({ path }) => path));
applySettings();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
