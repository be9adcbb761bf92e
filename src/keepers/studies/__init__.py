"""The paper's evaluation: clusterings judged against classes, studies that resume."""
