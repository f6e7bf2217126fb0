import com.marcnuri.helm.Helm;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * What `helm lint --strict` and `helm template` do, in one process.
 *
 * Render CHART TEMPLATES FOLDER KUBERNETES: lints CHART into FOLDER/lint, and renders TEMPLATES with each
 * FOLDER/NAME.values.yaml into FOLDER/NAME.yaml, or says in FOLDER/NAME.error why it cannot.
 */
public class Render {
  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[2]);
    var lint = new Helm(Path.of(args[0])).lint().strict().call();
    String verdict = lint.isFailed() ? "failed" : "passed";
    Files.writeString(folder.resolve("lint"), verdict + "\n" + String.join("\n", lint.getMessages()));
    try (var files = Files.newDirectoryStream(folder, "*.values.yaml")) {
      for (Path values : files) {
        String name = values.getFileName().toString().replace(".values.yaml", "");
        try {
          String text = new Helm(Path.of(args[1])).template().withName("idmint").withNamespace("ids")
              .withKubeVersion(args[3]).withValuesFile(values).call();
          Files.writeString(folder.resolve(name + ".yaml"), text);
        } catch (IllegalStateException refused) {
          Files.writeString(folder.resolve(name + ".error"), refused.getMessage());
        }
      }
    }
  }
}
